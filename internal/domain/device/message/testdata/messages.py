# SPDX-License-Identifier: Apache-2.0
#
# Checks the messages of messages.json by the text of docs/device-protocol.md, with OpenSSL and
# gost-engine. It shares no code with the service.

import base64, json, pathlib, subprocess, tempfile

def unbase(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

def integer(value):  # DER
    value = value.lstrip(b"\0")
    if value[0] & 0x80:
        value = b"\0" + value
    return b"\x02" + bytes([len(value)]) + value

with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    for row in json.loads(pathlib.Path(__file__).with_name("messages.json").read_text()):
        message = row["message"]
        header = json.loads(unbase(message["protected"]))
        assert json.loads(unbase(message["payload"])) == row["payload"]
        value = unbase(message["signature"])
        digest = ["-engine", "gost", "-md_gost12_256"]
        if header["alg"] == "ES256":
            body = integer(value[:32]) + integer(value[32:])
            value, digest = b"\x30" + bytes([len(body)]) + body, ["-sha256"]
        (work / "key").write_bytes(base64.b64decode(row["key"]))
        (work / "signature").write_bytes(value)
        (work / "input").write_text(message["protected"] + "." + message["payload"])
        subprocess.run(["openssl", "dgst", *digest, "-keyform", "DER", "-verify", work / "key",
                        "-signature", work / "signature", work / "input"], check=True)
