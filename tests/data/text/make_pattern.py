"""make_pattern.py OUT: whether texts match patterns, as Python's re.search has it, where it agrees with ECMA-262."""
import json, re, sys

CASES = [
    ("", ["", "a"]), ("a", ["", "a", "bab", "b"]), ("^a", ["a", "ba", "ab"]), ("a$", ["a", "ba", "ab"]),
    ("^a$", ["a", "aa", ""]), ("^$", ["", "a"]), ("^", ["", "a"]), ("$", ["", "a"]), ("a|b", ["a", "xb", "c"]),
    ("^(a|bc)*$", ["", "abc", "bca", "b", "abcb"]), ("^a+b?$", ["a", "aab", "b", "abb"]), ("^a{3}$", ["aaa", "aa", "aaaa"]),
    ("^a{2,3}$", ["a", "aa", "aaa", "aaaa"]), ("^a{2,}$", ["a", "aa", "aaaaa"]), ("^a{0}$", ["", "a"]), ("^(ab?){2}c$", ["aac", "abac", "ac", "ababac"]),
    ("^[a-c]+$", ["abc", "d", ""]), ("^[^a-c]+$", ["xyz", "xa", "\u00e9"]), (r"^\d+\.\d*$", ["1.", "12.5", ".5"]), (r"^\w+$", ["a_1", "a-b", ""]),
    (r"^\W$", ["-", "a", " "]), (r"^\s\S$", [" a", "a ", "\ta"]), (r"^[\w.-]+@[\w-]+$", ["a.b@c-d", "a@", "@a"]), ("^.{3}$", ["abc", "a\U0001f600b", "ab"]),
    ("^.$", ["a", "\n"]), (r"^[\]\\]$", ["]", "\\", "a"]), (r"^\u00e9\x41$", ["\u00e9A", "eA"]), ("^(?:a|b)c$", ["ac", "bc", "c"]), ("^[a-]$", ["a", "-", "b"]),
    ("^[-a]$", ["a", "-", "b"]), ("(^a|b$)", ["ax", "xb", "xa"]), ("^(a*)*b$", ["b", "aab", "aa"]), ("^(a|a)*(a|aa)*b$", ["aaab", "aaa", "b"]), ("^a*?b$", ["aab", "b", "a"]),
    ("^(a{2}){2,3}$", ["aaaa", "aaaaaa", "aa", "aaaaa"]), (r"^(\d{4})-(0[1-9]|1[0-2])$", ["2024-02", "2024-13", "24-02"]), ("x^", ["x", "", "xx"]), ("$a", ["a", ""]),
    ("^[^\"\\\\]*$", ["plain", "q\"", "b\\"]), ("[\u4e00-\u9fff]$", ["a\u4e2d", "\u4e2da"]), (r"\.(com|org)$", ["a.com", "a.org", "a.net", "a.com "]), ("a.c", ["abc", "a\nc", "xabcx"]),
    ("^(|a)b$", ["b", "ab", "aab"]), ("^a(b|)$", ["a", "ab", "abb"]), ("^[\\d\\s]+$", ["1 2", "a", ""]), ("^\\$\\^\\/$", ["$^/", "$^"]),
]
out = [{"pattern": p, "yes": [t for t in ts if re.search(p, t, re.ASCII)], "no": [t for t in ts if not re.search(p, t, re.ASCII)]} for p, ts in CASES]
json.dump({"python": sys.version.split()[0], "cases": out}, open(sys.argv[1], "w"), indent=0)
