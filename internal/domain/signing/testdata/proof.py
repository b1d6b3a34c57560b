#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verifies the evidence of a confirmation.

It is written from docs/confirmation.md alone and shares no code with the service. All
cryptography is made by OpenSSL with gost-engine (Debian: libengine-gost-openssl):

    tamga operation proof ID > proof.json
    python3 proof.py proof.json
"""
import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import urllib.parse


def openssl(*args, data=b""):
    return subprocess.run(["openssl", *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def streebog256(data):
    out = openssl("dgst", "-engine", "gost", "-md_gost12_256", "-binary", data=data)
    want(len(out.stdout) == 32, "OpenSSL has no gost-engine: " + out.stderr.decode())
    return out.stdout


def want(condition, otherwise):
    if not condition:
        sys.exit("refused: " + otherwise)


# 1. The digest of the fields.

def field(data):
    return struct.pack(">I", len(data)) + data


def number(n):
    return field(struct.pack(">I", n))


def size(n):
    return field(struct.pack(">Q", n))


def values(pairs):
    out = number(len(pairs))
    for one in pairs:
        out += field(one["name"].encode())
        if "digest" in one:
            out += field(b"\x01") + field(bytes.fromhex(one["digest"]))
        else:
            out += field(b"\x00") + field(one.get("value", "").encode())
    return out


def encode(v):
    ways = v.get("ways", [])
    out = field(b"tamga confirmation") + field(b"\x02" if ways else b"\x01")
    out += field(v["action"].encode())
    out += field(bytes.fromhex(v.get("certificate", "")))
    out += field(bytes.fromhex(v.get("public_key", "")))
    if ways:
        out += number(len(ways))
        for way in ways:
            out += field(way["signature_type"].encode()) + values(way.get("parameters", []))
    else:
        out += field(v.get("signature_type", "").encode())
        out += values(v.get("parameters", []))
    out += values(v.get("arguments", []))
    documents = v.get("documents", [])
    out += number(len(documents))
    for i, d in enumerate(documents):
        out += number(i)
        if ways:
            out += number(d.get("way", 0))
        out += field(d["name"].encode())
        out += size(d["size"])
        out += field(bytes.fromhex(d["digest"]))
        out += field(d.get("hash", "").encode())
        if "original" in d:
            out += size(d["original"]["size"]) + field(bytes.fromhex(d["original"]["digest"]))
        else:
            out += field(b"") + field(b"")
    return out


def plain(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def integer(data):
    data = data.lstrip(b"\x00") or b"\x00"
    if data[0] & 0x80:
        data = b"\x00" + data
    return b"\x02" + bytes([len(data)]) + data


class Files:
    """Files for OpenSSL."""

    def __init__(self, directory):
        self.directory = directory

    def __call__(self, name, data):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as f:
            f.write(data)
        return path


def check(proof, files):
    want(proof["version"] == 1, "an unknown version")
    fields = proof["what"]["fields"]
    digest = streebog256(encode(fields))
    want(digest.hex() == proof["what"]["digest"], "the fields do not give the digest")
    group = digest.hex()[:8]
    documents = fields.get("documents", [])
    declined = proof.get("declined", [])

    # 2. The audit entries: each names the action and the check number.
    states = []
    for entry in proof["audit"]:
        words = entry["detail"].split(" ")
        want(words[1:3] == [fields["action"], group], "an audit entry is about something else")
        states.append(words[0])
    want(states and states[-1] == proof["state"], "the audit entries do not end with the state")

    # 3. The approval of a device.
    approval = proof.get("approval")
    if approval:
        header, payload = json.loads(plain(approval["protected"])), json.loads(plain(approval["payload"]))
        want(payload["id"] == proof["id"], "the device approved another operation")
        want(payload["what"] == digest.hex(), "the device approved something else")
        want(sorted(payload.get("declined", [])) == declined, "the device declined other documents")
        want((header["typ"] == "confirm") == ("Confirmed" in states), "the device gave another decision")
        want(header["typ"] != "confirm" or payload.get("number", "") == proof.get("number", ""), "the device sent another number")
        value = plain(approval["signature"])
        key = files("device.der", base64.b64decode(approval["key"]))
        if header["alg"] == "ES256":
            body = integer(value[:32]) + integer(value[32:])
            value, md = b"\x30" + bytes([len(body)]) + body, ["-sha256"]
        else:
            want(header["alg"] == "GOST2012-256", "an unknown algorithm")
            md = ["-engine", "gost", "-md_gost12_256"]
        signed = files("signed", (approval["protected"] + "." + approval["payload"]).encode())
        pem = files("device.pem", openssl("pkey", "-engine", "gost", "-pubin", "-inform", "DER", "-in", key).stdout)
        out = openssl("dgst", *md, "-verify", pem, "-signature", files("value", value), signed)
        want(out.returncode == 0, "the signature of the device is wrong")

    # 4. The answer of a passkey.
    passkey = proof.get("passkey")
    if passkey:
        want("Confirmed" in states, "a passkey has answered, and nothing is confirmed")
        nonce = base64.b64decode(passkey["nonce"])
        want(len(nonce) == 32, "the random part of the challenge is missing")
        challenge = streebog256(b"".join(field(part) for part in [
            b"tamga passkey challenge", b"\x01", proof["id"].encode(), proof["user_id"].encode(), proof["client_id"].encode(),
            proof["purpose"].encode(), digest, struct.pack(">I", passkey["round"]), nonce]))
        client, data = base64.b64decode(passkey["client_data"]), base64.b64decode(passkey["authenticator_data"])
        try:
            said = json.loads(client)
        except ValueError:
            said = {}
        want(said.get("type") == "webauthn.get", "the passkey was asked for something else")
        want(plain(said["challenge"]) == challenge, "the passkey answered another challenge")
        host = urllib.parse.urlsplit(said["origin"]).hostname
        want(data[:32] == hashlib.sha256(host.encode()).digest(), "the passkey answered for another service")
        want(data[32] & 5 == 5, "the person was not present or not verified")
        key = files("passkey.der", base64.b64decode(passkey["key"]))
        pem = files("passkey.pem", openssl("pkey", "-pubin", "-inform", "DER", "-in", key).stdout)
        signed = files("signed", data + hashlib.sha256(client).digest())
        value = files("value", base64.b64decode(passkey["signature"]))
        if b"ED25519" in openssl("pkey", "-pubin", "-in", pem, "-noout", "-text").stdout.upper():
            out = openssl("pkeyutl", "-verify", "-pubin", "-inkey", pem, "-rawin", "-in", signed, "-sigfile", value)
        else:
            out = openssl("dgst", "-sha256", "-verify", pem, "-signature", value, signed)
        want(out.returncode == 0, "the signature of the passkey is wrong")
    want((proof.get("method") == "passkey" and "Confirmed" in states) == bool(passkey), "the answer of the passkey is missing")

    # 5. The signature.
    signature = proof.get("signature")
    if signature:
        want("Completed" in states and "Confirmed" in states, "a signature without a confirmation")
        der = base64.b64decode(signature["certificate"])
        certificate = files("certificate.der", der)
        pem = openssl("x509", "-engine", "gost", "-inform", "DER", "-in", certificate, "-noout", "-pubkey").stdout
        key = files("key.pem", pem)
        spki = base64.b64decode("".join(pem.decode().splitlines()[1:-1]))
        want(streebog256(der).hex() == fields["certificate"], "another certificate")
        want(streebog256(spki).hex() == fields["public_key"], "another public key")
        want([d["index"] for d in signature["documents"]] == [i for i in range(len(documents)) if i not in declined],
             "other documents were signed than approved")
        for d in signature["documents"]:
            out = openssl("pkeyutl", "-engine", "gost", "-verify", "-pubin", "-inkey", key,
                          "-in", files("digest", base64.b64decode(d["digest"])), "-sigfile", files("value", base64.b64decode(d["value"])))
            want(out.returncode == 0, "a signature is wrong")
    return group


with open(sys.argv[1], encoding="utf-8") as source, tempfile.TemporaryDirectory() as place:
    print("verified: check number " + check(json.load(source), Files(place)))
