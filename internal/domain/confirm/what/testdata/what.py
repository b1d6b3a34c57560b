#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what.json: vectors of the digest that users confirm.

It is written from docs/confirmation.md alone and shares no code with the service. The
digest is made by OpenSSL with gost-engine (Debian: libengine-gost-openssl):

    python3 what.py > what.json
"""
import json
import struct
import subprocess


def streebog256(data):
    out = subprocess.run(
        ["openssl", "dgst", "-engine", "gost", "-md_gost12_256", "-binary"],
        input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    assert len(out.stdout) == 32
    return out.stdout


def field(data):
    return struct.pack(">I", len(data)) + data


def number(n):
    return field(struct.pack(">I", n))


def size(n):
    return field(struct.pack(">Q", n))


def values(pairs):
    pairs = sorted((name.encode().lower(), value.encode()) for name, value in pairs.items())
    out = number(len(pairs))
    for name, value in pairs:
        out += field(name)
        if len(value) > 1024:
            out += field(b"\x01") + field(streebog256(value))
        else:
            out += field(b"\x00") + field(value)
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
            out += field(way["signature_type"].encode()) + values(way.get("parameters", {}))
    else:
        out += field(v.get("signature_type", "").encode())
        out += values(v.get("parameters", {}))
    out += values(v.get("arguments", {}))
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


certificate = streebog256(b"certificate").hex()
key = streebog256(b"key").hex()


def document(name, content, **more):
    return dict(name=name, size=len(content), digest=streebog256(content).hex(), **more)


cases = [
    dict(name="one document", action="SignDocument", certificate=certificate, public_key=key, signature_type="CAdES",
         parameters={"CADESType": "XLT1", "IsDetached": "true"}, documents=[document("договор.pdf", b"contract")]),
    dict(name="several documents", action="SignDocuments", certificate=certificate, public_key=key, signature_type="PDF",
         parameters={"PDFReason": "", "B": "2", "a": "1"},
         documents=[document("a.pdf", b"a"), document("", b""), document("a.pdf", b"a" * 5000)]),
    dict(name="long value", action="SignDocument", certificate=certificate, public_key=key, signature_type="PDF",
         parameters={"Picture": "я" * 513, "Limit": "x" * 1024}, documents=[document("x", b"x")]),
    dict(name="original", action="SignDocument", certificate=certificate, public_key=key, signature_type="CMS",
         documents=[document("x.p7s", b"signature", original=dict(size=7, digest=streebog256(b"content").hex()))]),
    dict(name="hash", action="SignDocument", certificate=certificate, public_key=key, signature_type="CMS",
         documents=[dict(name="", size=0, digest="ab" * 20, hash="SHA-1")]),
    dict(name="no documents", action="RevokeCertificate", certificate=certificate,
         arguments={"CertificateID": "7", "Reason": "KeyCompromise"}),
    dict(name="sign-in", action="SignIn", arguments={"client": "tamga-dev", "method": "password", "operator": "sidorova"}),
    dict(name="free", action="Free", arguments={"scope": "checkprofile", "template": "Показать профиль"}),
    dict(name="transaction", action="SignDocument", certificate=certificate, public_key=key, signature_type="CMS",
         arguments={"DocumentInfo": "договор.pdf", "DocumentType": "application/pdf"}, documents=[document("договор.pdf", b"contract")]),
    dict(name="request", action="CreateRequest", arguments={
        "operation": "request", "authority": "1 Тамга", "suite": "gost2012-256", "subject": "CN=Петров", "template": "1.2.643.1",
        "usages": "1.3.6.1.5.5.7.3.4", "life": "8760h0m0s", "protected": "true"}),
    dict(name="change of the account", action="ChangeAccount", arguments={
        "operation": "SetUserPhone", "request": "5f7c4a0e-0000-4000-8000-000000000001", "requester": "operator",
        "created": "2026-11-23T07:00:00Z", "digest": "ab" * 32}),
    dict(name="two ways", action="SignDocuments", certificate=certificate, public_key=key,
         ways=[dict(signature_type="PDF", parameters={"PDFFormat": "CMS", "PDFReason": "согласовано"}),
               dict(signature_type="CAdES", parameters={"CADESType": "BES", "IsDetached": "True"})],
         documents=[document("договор.pdf", b"contract"), document("a.txt", b"a", way=1), document("b.pdf", b"b" * 5000)]),
    dict(name="three ways", action="SignDocuments", certificate=certificate, public_key=key,
         ways=[dict(signature_type="MSOffice"), dict(signature_type="CMS", parameters={"Hash": "True"}),
               dict(signature_type="CAdES", parameters={"CmsSignatureType": "Cosign", "Long": "я" * 513})],
         arguments={"DocumentInfo": "договор"},
         documents=[document("a.docx", b"a"), dict(name="", size=0, digest="ab" * 20, hash="SHA-1", way=1),
                    document("x.p7s", b"signature", original=dict(size=7, digest=streebog256(b"content").hex()), way=2),
                    document("b.docx", b"b")]),
]

for case in cases:
    text = encode(case)
    case["encoded"] = text.hex()
    case["digest"] = streebog256(text).hex()

print(json.dumps(cases, ensure_ascii=False, indent=1))
