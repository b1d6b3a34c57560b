# SPDX-License-Identifier: Apache-2.0

"""Answers questions about Office documents by a LibreOffice of its own.

Arguments: the soffice program, a directory for its profile, a directory with
certificates in an NSS database, then either "verify" with files, or "make" with a
text and files, whose endings (docx, xlsx, pptx) say their kind. An answer to
verify is one line of JSON for each file: a list of signatures, or a text that says
why there is none.
"""
import json
import os
import signal
import subprocess
import sys
import time

import uno
from com.sun.star.beans import PropertyValue

FACTORIES = {
    "docx": ("private:factory/swriter", "MS Word 2007 XML"),
    "xlsx": ("private:factory/scalc", "Calc MS Excel 2007 XML"),
    "pptx": ("private:factory/simpress", "Impress MS PowerPoint 2007 XML"),
}


def prop(name, value):
    return PropertyValue(name, 0, value, 0)


def url(path):
    return uno.systemPathToFileUrl(os.path.abspath(path))


def connect(pipe, office):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    while True:
        try:
            return resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
        except Exception:
            # It listens when it is ready; the caller ends this program when it never is.
            if office.poll() is not None:
                raise SystemExit("soffice ended with %d" % office.returncode)
            time.sleep(0.1)


def verify(context, path):
    services = context.ServiceManager
    storages = services.createInstanceWithContext("com.sun.star.embed.StorageFactory", context)
    # As a plain archive: what LibreOffice takes for the same document in its window.
    form = uno.Any("[]com.sun.star.beans.PropertyValue", (prop("StorageFormat", "ZipFormat"),))
    storage = uno.invoke(storages, "createInstanceWithArguments", ((url(path), 1, form),))
    judge = services.createInstanceWithArgumentsAndContext(
        "com.sun.star.security.DocumentDigitalSignatures", ("1.2", True), context)
    return [{
        "Valid": bool(s.SignatureIsValid),
        "Certificate": int(s.CertificateStatus),
        "Signer": s.Signer.SubjectName if s.Signer else "",
    } for s in judge.verifyDocumentContentSignatures(storage, None)]


def make(context, text, path):
    kind = path.rpartition(".")[2]
    factory, form = FACTORIES[kind]
    desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
    document = desktop.loadComponentFromURL(factory, "_blank", 0, (prop("Hidden", True),))
    if kind == "docx":
        document.Text.setString(text)
    elif kind == "xlsx":
        document.Sheets.getByIndex(0).getCellByPosition(0, 0).setString(text)
    else:
        shape = document.createInstance("com.sun.star.drawing.TextShape")
        document.DrawPages.getByIndex(0).add(shape)
        shape.setString(text)
    document.storeToURL(url(path), (prop("FilterName", form),))
    document.close(True)


def main():
    program, profile, certificates, question, *rest = sys.argv[1:]
    pipe = "judge%d" % os.getpid()
    office = subprocess.Popen(
        [program, "--headless", "--invisible", "--norestore", "--nologo", "--nodefault",
         "-env:UserInstallation=" + url(profile), "--accept=pipe,name=%s;urp;" % pipe],
        env=dict(os.environ, HOME=profile, MOZILLA_CERTIFICATE_FOLDER=certificates),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        context = connect(pipe, office)
        if question == "make":
            for path in rest[1:]:
                make(context, rest[0], path)
        else:
            for path in rest:
                try:
                    answer = verify(context, path)
                except Exception as e:
                    answer = str(e) or repr(e)
                print(json.dumps(answer), flush=True)
        try:
            context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context).terminate()
        except Exception:
            pass  # the connection ends with it
        office.wait(20)
    finally:
        # soffice is a script that starts the program: they end together.
        try:
            os.killpg(office.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        office.wait()


main()
