# SPDX-License-Identifier: Apache-2.0
#
# Takes a document with encrypted data (XML Encryption with the algorithms of CryptoPro) apart and makes a
# CMS message of it, which OpenSSL reads, or the other way round. Written from the standards, without the code
# that it judges.
#
#   xmlenc.py to-cms             XML on the standard input, DER on the standard output
#   xmlenc.py to-xml TYPE URI    DER on the standard input, XML on the standard output. The only recipient has
#                                the certificate in the file recipient.der

import base64
import sys
import xml.etree.ElementTree as ElementTree

ENC = "{http://www.w3.org/2001/04/xmlenc#}"
DS = "{http://www.w3.org/2000/09/xmldsig#}"
PRO = "urn:ietf:params:xml:ns:cpxmlsec:algorithms:"


def der(tag, *parts):
    body = b"".join(parts)
    n = len(body)
    if n < 128:
        return bytes([tag, n]) + body
    size = n.to_bytes((n.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + body


def elements(data):
    """The elements of a DER text, each as tag, content and whole."""
    at, found = 0, []
    while at < len(data):
        begin, tag, n = at, data[at], data[at + 1]
        at += 2
        if n & 0x80:
            count = n & 0x7F
            n = int.from_bytes(data[at : at + count], "big")
            at += count
        found.append((tag, data[at : at + n], data[begin : at + n]))
        at += n
    return found


def oid(*numbers):
    out = [numbers[0] * 40 + numbers[1]]
    for number in numbers[2:]:
        part = [number & 0x7F]
        while number := number >> 7:
            part.insert(0, 0x80 | number & 0x7F)
        out += part
    return der(6, bytes(out))


def certificate_parts(raw):
    """Issuer with serial number, and the algorithm of the key."""
    fields = elements(elements(elements(raw)[0][1])[0][1])
    if fields[0][0] == 0xA0:
        fields = fields[1:]
    serial, issuer, spki = fields[0][2], fields[2][2], fields[5][1]
    return der(0x30, issuer, serial), elements(spki)[0][2]


def only(element, name):
    found = element.findall(name)
    assert len(found) == 1, (element.tag, name, len(found))
    return found[0]


def value(element):
    return base64.b64decode("".join(only(only(element, ENC + "CipherData"), ENC + "CipherValue").text.split()), validate=True)


def to_cms(document):
    data = list(ElementTree.fromstring(document).iter(ENC + "EncryptedData"))
    assert len(data) == 1, len(data)
    assert only(data[0], ENC + "EncryptionMethod").get("Algorithm") == PRO + "gost28147"
    infos, sets = [], set()
    for key in only(data[0], DS + "KeyInfo").findall(ENC + "EncryptedKey"):
        assert only(key, ENC + "EncryptionMethod").get("Algorithm").startswith(PRO + "transport-gost20")
        certificate = only(only(only(key, DS + "KeyInfo"), DS + "X509Data"), DS + "X509Certificate").text
        identifier, algorithm = certificate_parts(base64.b64decode(certificate))
        encrypted = value(key)
        parameters = elements(elements(encrypted)[0][1])[1]
        assert parameters[0] == 0xA0, parameters
        sets.add(elements(parameters[1])[0][2])
        infos.append(der(0x30, der(2, b"\0"), identifier, algorithm, der(4, encrypted)))
    assert len(sets) == 1, sets
    sealed = value(data[0])
    cipher = der(0x30, oid(1, 2, 643, 2, 2, 21), der(0x30, der(4, sealed[:8]), sets.pop()))
    content = der(0x30, oid(1, 2, 840, 113549, 1, 7, 1), cipher, der(0x80, sealed[8:]))
    enveloped = der(0x30, der(2, b"\0"), der(0x31, *sorted(infos)), content)
    return der(0x30, oid(1, 2, 840, 113549, 1, 7, 3), der(0xA0, enveloped))


def to_xml(message, kind, uri):
    content = elements(elements(message)[0][1])[1]
    fields = elements(elements(content[1])[0][1])
    infos = [f for f in fields if f[0] == 0x31][0]
    recipient = elements(elements(infos[1])[0][1])
    encrypted = recipient[3][1]
    cipher = elements(fields[-1][1])
    iv, box = elements(elements(elements(cipher[1][1])[1][2])[0][1])
    assert elements(elements(elements(encrypted)[0][1])[1][1])[0][2] == box[2], "the content has another set than the key"
    sealed = cipher[2]
    text = sealed[1]
    if sealed[0] == 0xA0:
        text = b"".join(part[1] for part in elements(sealed[1]))
    def base(data):
        return base64.encodebytes(data).decode()
    with open("recipient.der", "rb") as file:
        certificate = file.read()
    return (
        f'<?xml version="1.0"?>\n<e:EncryptedData Type="{kind}" xmlns:e="{ENC[1:-1]}">\n <e:EncryptionMethod Algorithm="{PRO}gost28147"/>\n'
        f' <KeyInfo xmlns="{DS[1:-1]}"><e:EncryptedKey>\n  <e:EncryptionMethod Algorithm="{uri}"/>\n'
        f"  <KeyInfo><X509Data><X509Certificate>{base(certificate)}</X509Certificate></X509Data></KeyInfo>\n"
        f"  <e:CipherData><e:CipherValue>{base(encrypted)}</e:CipherValue></e:CipherData>\n </e:EncryptedKey></KeyInfo>\n"
        f" <e:CipherData><e:CipherValue>{base(iv[1] + text)}</e:CipherValue></e:CipherData>\n</e:EncryptedData>"
    ).encode()


if sys.argv[1] == "to-cms":
    sys.stdout.buffer.write(to_cms(sys.stdin.buffer.read()))
else:
    sys.stdout.buffer.write(to_xml(sys.stdin.buffer.read(), *sys.argv[2:]))
