# Reads a container by ETSI EN 319 162-1 and takes out its signatures, with the files into FILES. It prints a line
# for each signature: "cms SIGNATURE CONTENT" or "xml SIGNATURE". It fails if the container breaks a rule, or if a file
# differs from its digest in a list. Digests that Python does not have are left out.
# container.py CONTAINER DIR FILES
import base64, hashlib, os, sys, urllib.parse, zipfile
import xml.etree.ElementTree as ET

container, out, files = sys.argv[1:4]
asic, ds = "{http://uri.etsi.org/02918/v1.2.1#}", "{http://www.w3.org/2000/09/xmldsig#}"
hashes = {
    "http://www.w3.org/2001/04/xmlenc#sha256": "sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384": "sha384",
    "http://www.w3.org/2001/04/xmlenc#sha512": "sha512",
}


def must(held, text):
    if not held:
        sys.exit(text)


with open(container, "rb") as f:
    head = f.read(4096)
z = zipfile.ZipFile(container)
must(z.testzip() is None, "a checksum is wrong")
entries = z.infolist()
names = [e.filename for e in entries]
must(len(set(names)) == len(names), "a name is there twice")
first = entries[0]
must(first.filename == "mimetype" and first.compress_type == zipfile.ZIP_STORED and first.header_offset == 0, "mimetype is not first and stored")
kind = z.read("mimetype").decode()
must(head[30:38] == b"mimetype" and head[38:38 + len(kind)] == kind.encode(), "mimetype is not at its place")
must(kind in ("application/vnd.etsi.asic-s+zip", "application/vnd.etsi.asic-e+zip"), "another mimetype")
single = "asic-s" in kind
data = [n for n in names if n != "mimetype" and not n.startswith("META-INF/") and not n.endswith("/")]
must(not single or len(data) == 1, "ASiC-S has one file")
for n in data:
    path = os.path.join(files, n)
    must(os.path.realpath(path).startswith(os.path.realpath(files) + os.sep), "a name leads out")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(z.read(n))
number = 0


def keep(content):
    global number
    number += 1
    with open(os.path.join(out, "taken%d" % number), "wb") as f:
        f.write(content)
    return "taken%d" % number


lists = {}
for n in names:
    if n.startswith("META-INF/ASiCManifest") and n.endswith(".xml"):
        root = ET.fromstring(z.read(n))
        must(root.tag == asic + "ASiCManifest", "another root")
        signature = root.find(asic + "SigReference").get("URI")
        must(signature in names and signature not in lists, "a list names no signature of its own")
        lists[signature] = n
        listed = []
        for r in root.findall(asic + "DataObjectReference"):
            name = urllib.parse.unquote(r.get("URI"))
            must(name in data, "a list names what is not there: " + name)
            listed.append(name)
            h = hashes.get(r.find(ds + "DigestMethod").get("Algorithm"))
            if h:
                must(base64.b64decode(r.find(ds + "DigestValue").text) == hashlib.new(h, z.read(name)).digest(), "changed: " + name)
        must(sorted(listed) == sorted(data), "a list does not have all files")
for n in names:
    if n.startswith("META-INF/signature") and n.endswith(".p7s"):
        content = data[0] if single else lists.get(n)
        must(content is not None, "a signature has no list")
        print("cms", keep(z.read(n)), keep(z.read(content)))
    elif n.startswith("META-INF/signatures") and n.endswith(".xml"):
        must(ET.fromstring(z.read(n)).tag == asic + "XAdESSignatures", "another root")
        must(len(ET.fromstring(z.read(n)).findall(ds + "Signature")) >= 1, "no Signature")
        refs = [urllib.parse.unquote(r.get("URI")) for s in ET.fromstring(z.read(n)).findall(ds + "Signature") for r in s.find(ds + "SignedInfo").findall(ds + "Reference")]
        must(all(d in refs for d in data), "a signature does not cover all files")
        print("xml", keep(z.read(n)))
