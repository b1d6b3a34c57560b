# SPDX-License-Identifier: Apache-2.0
#
# Checks the challenges of offline.json and the new keys of successors.json by the text of docs/device-protocol.md, with OpenSSL and
# gost-engine: the signature of the service, and the code that the device makes. It shares no code with
# the service.

import base64, json, pathlib, subprocess, tempfile

def unbase(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

def integer(value):  # DER
    value = value.lstrip(b"\0")
    if value[0] & 0x80:
        value = b"\0" + value
    return b"\x02" + bytes([len(value)]) + value

def prefixed(*parts):
    return b"".join(len(p).to_bytes(4, "big") + p for p in parts)

def openssl(*args, data=None):
    return subprocess.run(["openssl", *map(str, args)], input=data, check=True, capture_output=True).stdout

def mac(gost, key, data):
    digest = ["-engine", "gost", "-md_gost12_256"] if gost else ["-sha256"]
    return openssl("dgst", *digest, "-mac", "HMAC", "-macopt", "hexkey:" + key.hex(), "-binary", data=data)

def rows(file):
    return json.loads(pathlib.Path(__file__).with_name(file).read_text())

def check_signature(work, gost, key, signature, data):
    value = unbase(signature)
    if not gost:
        body = integer(value[:32]) + integer(value[32:])
        value = b"\x30" + bytes([len(body)]) + body
    (work / "service").write_bytes(key)
    (work / "signature").write_bytes(value)
    (work / "input").write_bytes(data)
    openssl("dgst", *(["-engine", "gost", "-md_gost12_256"] if gost else ["-sha256"]), "-keyform", "DER",
            "-verify", work / "service", "-signature", work / "signature", work / "input")

with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    for row in rows("successors.json"):
        key, new = base64.b64decode(row["service_key"]), row["new_service_key"]
        check_signature(work, row["alg"] == "GOST2012-256", key, new["signature"], prefixed(
            b"tamga service key 1", row["service_url"].encode(), key, base64.b64decode(new["key"]),
            new["until"].to_bytes(8, "big")))
        print(row["alg"], "new key")
    for row in rows("offline.json"):
        gost, data = row["alg"] == "GOST2012-256", row["qr"]["data"]
        engine = ["-engine", "gost"] if gost else []
        kid, identifier = data["kid"].encode(), data["id"].encode()
        what, nonce, key = bytes.fromhex(data["what"]), unbase(data["nonce"]), unbase(data["key"])

        # The signature of the service.
        check_signature(work, gost, base64.b64decode(row["service_key"]), data["signature"], prefixed(
            b"tamga offline challenge 1", kid, data["service_url"].encode(), identifier, what, unbase(data["text"]),
            bytes([data["number"]]), data["before"].to_bytes(8, "big"), nonce, key))

        # The code.
        for file, der, public in ("device", base64.b64decode(row["device_key"]), []), ("peer", key, ["-pubin"]):
            (work / file).write_bytes(openssl("pkey", *engine, "-inform", "DER", *public, *(["-pubout"] if public else []), data=der))
        shared = openssl("pkeyutl", *engine, "-derive", "-inkey", work / "device", "-peerkey", work / "peer",
                         *(["-pkeyopt", "ukmhex:" + nonce[:8].hex(), "-pkeyopt", "vko:256"] if gost else []))
        label = b"tamga offline code 1"
        if gost:  # KDF_GOSTR3411_2012_256 of RFC 7836
            derived = mac(gost, shared, b"\x01" + label + b"\x00" + nonce + b"\x01\x00")
        else:  # HKDF of RFC 5869 with one block
            derived = mac(gost, mac(gost, nonce, shared), label + b"\x01")
        tag = mac(gost, derived, prefixed(label, kid, identifier, what, nonce))
        code = "%08d" % (int.from_bytes(tag[:8], "big") % 10**8)
        assert code == row["code"], (row["alg"], code, row["code"])
        print(row["alg"], code)
