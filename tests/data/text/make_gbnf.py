"""make.py OUT: whether texts meet grammars, as xgrammar's matcher has it."""
import json, sys
import importlib.metadata
import xgrammar as xg

CASES = [
    ('root ::= "a"', ["a", "", "aa", "b"]),
    ('root ::= "yes" | "no"', ["yes", "no", "ye", "yesno", "maybe"]),
    ('root ::= [a-c]+', ["a", "abcabc", "", "abd", "d"]),
    ('root ::= [^a-c]*', ["", "xyz", "xa", "\u00e9\U0001f600", "b"]),
    ('root ::= "x" [0-9]* "y"?', ["x", "x12", "xy", "x9y", "y", "xyy"]),
    ('root ::= [ab]{3}', ["aba", "ab", "abab", "abc"]),
    ('root ::= [ab]{2,4}', ["a", "ab", "aba", "abab", "ababa"]),
    ('root ::= [ab]{2,}', ["a", "ab", "abababab", "abc"]),
    ('root ::= ("ab" | "c"){2} "d"', ["ababd", "abcd", "ccd", "cd", "cccd"]),
    ('root ::= item ("," item)*\nitem ::= [a-z]+', ["a", "a,b", "ab,cd,e", "a,", ",a", ""]),
    ('# a comment\nroot ::= expr # another\nexpr ::= term ("+" term)*\nterm ::= [0-9]+ | "(" expr ")"',
     ["1", "1+2", "(1+2)+3", "((4))", "(1", "1+", "()", "1)2"]),
    ('root ::= "(" root ")" | ""', ["", "()", "((()))", "(()", "())", "()()"]),
    ('root ::= (\n  "a" |\n  "b"\n)+', ["a", "ab", "", "abc"]),
    ('root ::= "\\n" | "\\t" | "\\\\" | "\\"" | "\\x41" | "\\u00e9" | "\\U0001F600"',
     ["\n", "\t", "\\", '"', "A", "\u00e9", "\U0001f600", "n", "e"]),
    ('root ::= [\\u4e00-\\u9fff]{1,2}', ["\u4e2d", "\u4e2d\u6587", "", "a", "\u4e2d\u6587\u5b57"]),
    ('root ::= [a\\-z]+', ["a-z", "-", "b"]),
    ('root ::= [-a]+', ["-a", "b"]),
    ('root ::= a b c\na ::= "1"?\nb ::= "2"*\nc ::= "3"', ["3", "13", "123", "12223", "23", "12", "33"]),
    ('root ::= "a" root "b" | "c"', ["c", "acb", "aacbb", "aacb", "acbb"]),
    ('root ::= ("a"? "b"?)* "c"', ["c", "ac", "abc", "bbaac", "abab", "cc"]),
    ('root ::= "a"* "a"* "b"', ["b", "aaab", "aaaa", "aba"]),
    ('root ::= object\nobject ::= "{" ws (pair ("," ws pair)*)? "}"\npair ::= string ":" ws value ws\n'
     'value ::= string | number | object | "true" | "null"\nstring ::= "\\"" [^"\\\\]* "\\""\n'
     'number ::= "-"? [0-9]+ ("." [0-9]+)?\nws ::= [ \\n]*',
     ["{}", '{"a":1}', '{ "a": {"b": -1.5} ,"c":null}', '{"a"}', '{"a":1,}', '{"a": "\u00e9"}', '{"a":tru}']),
    ('root ::= "a" "b"\n\n\nother ::= "c"', ["ab", "c", "abc"]),
    ('root ::= [\\]\\[]+', ["[]", "]", "a"]),
]
tok = xg.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], vocab_type=xg.VocabType.RAW, stop_token_ids=[256])
comp = xg.GrammarCompiler(tok)
out = []
for grammar, texts in CASES:
    c = comp.compile_grammar(grammar)
    row = {"grammar": grammar, "valid": [], "invalid": []}
    for t in texts:
        m = xg.GrammarMatcher(c)
        ok = m.accept_string(t.encode()) if t else True
        row["valid" if ok and m.accept_token(256) else "invalid"].append(t)
    out.append(row)
json.dump({"xgrammar": importlib.metadata.version("xgrammar"), "cases": out}, open(sys.argv[1], "w"), indent=0)
for r in out: print(r["valid"], r["invalid"])
