# SPDX-License-Identifier: Apache-2.0
"""Reads the archive time stamps (archive-time-stamp-v3) of a signed message as ETSI EN 319 122-1, 5.5.2
and 5.5.3 describe them, and compares the imprint and the index of each with the message.

    archive.py MESSAGE [DOCUMENT]

It is written from the standard and shares nothing with the program that it judges. For each stamp of each
signature it prints the digest in the token, and writes the token to token-N.der. It exits with 1 if a stamp
does not fit. Digests that Python does not have are computed by openssl.
"""
import functools
import hashlib
import subprocess
import sys

ARCHIVE_V3 = "0.4.0.1733.2.4"
HASH_INDEX_V3 = "0.4.0.19122.1.5"
NAMES = {
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
    "1.2.643.7.1.1.2.2": "md_gost12_256",
    "1.2.643.7.1.1.2.3": "md_gost12_512",
    "1.2.643.2.2.9": "md_gost94",
}


@functools.cache
def digest(oid, data):
    name = NAMES[oid]
    if name.startswith("sha"):
        return hashlib.new(name, data).digest()
    return subprocess.run(["openssl", "dgst", "-" + name, "-binary"], input=data, capture_output=True, check=True).stdout


class Element:
    """One element of DER: tag, contents, and the whole with its header."""

    def __init__(self, data, at):
        self.tag = data[at]
        length, start = data[at + 1], at + 2
        if length == 0x80:
            raise ValueError("an indefinite length")
        if length > 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[start : start + count], "big")
            start += count
        self.end = start + length
        if self.end > len(data):
            raise ValueError("cut short")
        self.value, self.whole = data[start : self.end], data[at : self.end]

    def parts(self):
        return elements(self.value)


def elements(data):
    at, out = 0, []
    while at < len(data):
        one = Element(data, at)
        out.append(one)
        at = one.end
    return out


def one(data):
    element = Element(data, 0)
    if element.end != len(data):
        raise ValueError("bytes follow")
    return element


def oid(element):
    if element.tag != 6:
        raise ValueError("an object identifier expected")
    arcs, number = [], 0
    for byte in element.value:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            arcs.append(number)
            number = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(str(n) for n in [first, arcs[0] - 40 * first] + arcs[1:])


class Signed:
    """A SignedData."""

    def __init__(self, der):
        kind, explicit = one(der).parts()
        if oid(kind) != "1.2.840.113549.1.7.2":
            raise ValueError("no SignedData")
        fields = one(explicit.value).parts()
        self.content_type, *content = fields[2].parts()
        self.content = one(content[0].value).value if content else None
        self.certificates, self.crls = [], []
        for field in fields[3:-1]:
            if field.tag == 0xA0:
                self.certificates = [e.whole for e in field.parts()]
            elif field.tag == 0xA1:
                self.crls = [e.whole for e in field.parts()]
        self.signers = [s.parts() for s in fields[-1].parts()]


def unsigned(signer):
    """The unsigned attributes of a SignerInfo: the type as an element, and the values."""
    if signer[-1].tag != 0xA1:
        return []
    out = []
    for attribute in signer[-1].parts():
        kind, values = attribute.parts()
        out.append((kind, values.parts()))
    return out


def judge(message, signer, document, token):
    """Returns what is wrong with one stamp, and the digest in it."""
    stamp = Signed(token)
    info = one(stamp.content).parts()
    algorithm, imprint = info[2].parts()
    used = oid(algorithm.parts()[0])
    indexes = [v for s in stamp.signers for kind, v in unsigned(s) if oid(kind) == HASH_INDEX_V3]
    if len(indexes) != 1 or len(indexes[0]) != 1:
        return "one index expected", imprint.value
    index = indexes[0][0]
    of, certificates, crls, attributes = index.parts()
    hashed = oid(of.parts()[0])
    # 5.5.3: the type of the content, the digest of the content, the fields of the SignerInfo from version
    # to signature as they are in the message, and the index.
    fields = b"".join(f.whole for f in signer if f.tag != 0xA1)
    data = message.content_type.whole + digest(used, document) + fields + index.whole
    if digest(used, data) != imprint.value:
        return "the imprint is of something else", imprint.value
    # 5.5.2: each digest is of something in the message, and the index of attributes has one for each value.
    values = [kind.whole + v.whole for kind, vs in unsigned(signer) for v in vs]
    for what, list_, have in (("certificates", certificates, message.certificates), ("crls", crls, message.crls), ("attributes", attributes, values)):
        left = [digest(hashed, h) for h in have]
        for entry in list_.parts():
            if entry.value not in left:
                return "the index of " + what + " names something else", imprint.value
            left.remove(entry.value)
    return "", imprint.value


def main():
    with open(sys.argv[1], "rb") as f:
        message = Signed(f.read())
    document = message.content
    if len(sys.argv) > 2:
        with open(sys.argv[2], "rb") as f:
            document = f.read()
    count, wrong = 0, False
    for signer in message.signers:
        for kind, values in unsigned(signer):
            if oid(kind) != ARCHIVE_V3:
                continue
            for value in values:
                fault, imprint = judge(message, signer, document, value.whole)
                with open("token-%d.der" % count, "wb") as f:
                    f.write(value.whole)
                print(imprint.hex())
                count += 1
                if fault:
                    print("stamp %d: %s" % (count - 1, fault), file=sys.stderr)
                    wrong = True
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
