# SPDX-License-Identifier: Apache-2.0
"""Bundles of model_signing read by us and ours by it, with keys and certificates; changed trees. TAP."""
import os
import pathlib
import shutil
import subprocess

from model_signing import hashing, signing, verifying

B, T = os.environ["B"], os.environ["T"]
KEYS = pathlib.Path(T) / "data/oms/keys"
run = 0


def ok(yes, what):
    global run
    run += 1
    print(f"{'' if yes else 'not '}ok {run} - {what}", flush=True)


def ours(*words):
    return subprocess.run([f"{B}/moe-verify", *map(str, words)], capture_output=True).returncode


def theirs(config, sig):
    config = config.set_hashing_config(hashing.Config().set_ignored_paths(paths=[], ignore_git_paths=True))
    try:
        config.verify(pathlib.Path("m"), pathlib.Path(sig))
        return 0
    except Exception:
        return 1


shutil.copytree(f"{T}/data/oms/model", "m")
for key in ("p256", "p384", "p521", "leaf"):
    shutil.copy(KEYS / f"{key}.key", ".")
    os.chmod(f"{key}.key", 0o600)
pathlib.Path("chain.pem").write_text((KEYS / "leaf.crt").read_text() + (KEYS / "int.crt").read_text())

for key in ("p256", "p384", "p521"):
    pub = KEYS / f"{key}.pub"
    by_key = lambda: verifying.Config().use_elliptic_key_verifier(public_key=pub)
    ok(ours("sign", "--key", f"{key}.key", "-o", f"{key}.ours", "m") == 0, f"{key}: we sign")
    ok(theirs(by_key(), f"{key}.ours") == 0, f"{key}: it verifies ours")
    signing.Config().use_elliptic_key_signer(private_key=pathlib.Path(f"{key}.key")).sign("m", f"{key}.its")
    ok(ours("verify", "--key", pub, f"{key}.its", "m") == 0, f"{key}: we verify its")

ok(ours("sign", "--key", "leaf.key", "--certs", "chain.pem", "-o", "cert.ours", "m") == 0, "certificate: we sign")
by_root = lambda: verifying.Config().use_certificate_verifier(certificate_chain=[KEYS / "root.crt"])
ok(theirs(by_root(), "cert.ours") == 0, "certificate: it verifies ours")
signing.Config().use_certificate_signer(private_key=pathlib.Path("leaf.key"), signing_certificate=KEYS / "leaf.crt",
                                        certificate_chain=[KEYS / "int.crt"]).sign("m", "cert.its")
ok(ours("verify", "--roots", KEYS / "root.crt", "cert.its", "m") == 0, "certificate: we verify its")


def tamper(what):
    with open("m/a.txt", "ab") as f:
        f.write(b"x")
    return what


def extra(what):
    pathlib.Path("m/extra").write_text("x")
    return what


for change in (tamper, extra):
    what = change(change.__name__)
    for sig in ("p256.ours", "p256.its"):
        by = verifying.Config().use_elliptic_key_verifier(public_key=KEYS / "p256.pub")
        ok(theirs(by, sig) == 1 == ours("verify", "--key", KEYS / "p256.pub", sig, "m"), f"{what}: {sig}: both refuse")
    shutil.rmtree("m")
    shutil.copytree(f"{T}/data/oms/model", "m")
print(f"1..{run}")
