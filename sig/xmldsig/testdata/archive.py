# SPDX-License-Identifier: Apache-2.0

"""Writes what each time stamp of the first signature of an XML document covers into a file, and prints the names.

It is written from XML Signature 1.1, Exclusive XML Canonicalization 1.0 and EN 319 132-1, 5.3 and 5.5.2.2, and
shares nothing with the program that it checks. It knows the canonical form and the transforms that this program
writes, and stops at others.
"""

import hashlib
import sys
from base64 import b64decode
from xml.dom import minidom, Node

DS = "http://www.w3.org/2000/09/xmldsig#"
XADES = "http://uri.etsi.org/01903/v1.3.2#"
LATER = "http://uri.etsi.org/01903/v1.4.1#"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED = DS + "enveloped-signature"


def text(s):
    return s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def value(s):
    for a, b in (("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;"), ("\t", "&#x9;"), ("\n", "&#xA;"), ("\r", "&#xD;")):
        s = s.replace(a, b)
    return s


def canonical(node, without=None, rendered=None):
    """The exclusive canonical form without comments of a node, without one element in it."""
    rendered = rendered or {}
    if node is without or node.nodeType in (Node.COMMENT_NODE, Node.DOCUMENT_TYPE_NODE):
        return ""
    if node.nodeType == Node.DOCUMENT_NODE:
        parts, after = [], False
        for child in node.childNodes:
            part = canonical(child, without, rendered)
            if child.nodeType == Node.ELEMENT_NODE:
                after = True
            elif part:
                part = "\n" + part if after else part + "\n"
            parts.append(part)
        return "".join(parts)
    if node.nodeType == Node.PROCESSING_INSTRUCTION_NODE:
        return "<?" + node.target + (" " + node.data if node.data else "") + "?>"
    if node.nodeType != Node.ELEMENT_NODE:
        return text(node.data)
    used, attributes = {node.prefix or "": node.namespaceURI or ""}, []
    for a in node.attributes.values() if node.attributes else []:
        if a.name == "xmlns" or a.name.startswith("xmlns:"):
            continue
        attributes.append((a.namespaceURI or "" if a.prefix else "", a.localName or a.name, a.name, a.value))
        if a.prefix and a.prefix != "xml":
            used[a.prefix] = a.namespaceURI
    rendered = dict(rendered)
    out = "<" + node.tagName
    for prefix in sorted(used):
        if rendered.get(prefix, "") != used[prefix]:
            out += " xmlns" + (":" + prefix if prefix else "") + '="' + value(used[prefix]) + '"'
            rendered[prefix] = used[prefix]
    for _, _, name, v in sorted(attributes):
        out += " " + name + '="' + value(v) + '"'
    out += ">" + "".join(canonical(c, without, rendered) for c in node.childNodes)
    return out + "</" + node.tagName + ">"


def elements(node):
    return [c for c in node.childNodes if c.nodeType == Node.ELEMENT_NODE]


def child(node, space, name):
    found = [c for c in elements(node) if (c.namespaceURI, c.localName) == (space, name)]
    return found[0] if found else None


def content(node):
    return "".join(c.data for c in node.childNodes)


def by_id(document, name):
    found = [e for e in document.getElementsByTagName("*") if name in (e.getAttribute("Id"), e.getAttribute("ID"), e.getAttribute("id"))]
    assert len(found) == 1, name
    return found[0]


def referenced(document, signature, reference):
    """The bytes that a reference refers to (XMLDSig, 4.4.3.2), which its digest must match."""
    uri, without = reference.getAttribute("URI"), None
    node = by_id(document, uri[1:]) if uri else document
    for t in elements(child(reference, DS, "Transforms")):
        algorithm = t.getAttribute("Algorithm")
        if algorithm == ENVELOPED:
            without = signature
        else:
            assert algorithm == EXCLUSIVE and not elements(t), algorithm
    data = canonical(node, without).encode()
    method = child(reference, DS, "DigestMethod").getAttribute("Algorithm")
    if method.endswith("#sha256"):
        assert hashlib.sha256(data).digest() == b64decode(content(child(reference, DS, "DigestValue")))
    return data


def main(path):
    document = minidom.parse(path)
    signature = document.getElementsByTagNameNS(DS, "Signature")[0]
    info = child(signature, DS, "SignedInfo")
    assert child(info, DS, "CanonicalizationMethod").getAttribute("Algorithm") == EXCLUSIVE
    objects = [o for o in elements(signature) if o.localName == "Object"]
    own = [o for o in objects if child(o, XADES, "QualifyingProperties")][0]
    unsigned = child(child(child(own, XADES, "QualifyingProperties"), XADES, "UnsignedProperties"), XADES, "UnsignedSignatureProperties")
    number = 0
    for place, p in enumerate(elements(unsigned)):
        if (p.namespaceURI, p.localName) == (XADES, "SignatureTimeStamp"):
            data = canonical(child(signature, DS, "SignatureValue")).encode()
        elif (p.namespaceURI, p.localName) == (LATER, "ArchiveTimeStamp"):
            parts = [referenced(document, signature, r) for r in elements(info) if r.localName == "Reference"]
            rest = [info, child(signature, DS, "SignatureValue"), child(signature, DS, "KeyInfo")]
            rest += elements(unsigned)[:place] + [o for o in objects if o is not own]
            data = b"".join(parts + [canonical(n).encode() for n in rest if n is not None])
        else:
            continue
        assert child(p, DS, "CanonicalizationMethod").getAttribute("Algorithm") == EXCLUSIVE
        name = "input-%d" % number
        number += 1
        with open(name, "wb") as f:
            f.write(data)
        print(name)


main(sys.argv[1])
