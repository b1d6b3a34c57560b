# SPDX-License-Identifier: Apache-2.0

# Identity providers of SAML by pysaml2, whose signatures are the program xmlsec1's, and by
# lasso. They read orders as lines of JSON and answer each with a line: without
# metadata_of_service their own metadata, with it the answer to a request.
import base64
import json
import os
import sys

from saml2 import BINDING_HTTP_REDIRECT, metadata, saml
from saml2.config import IdPConfig
from saml2.server import Server
from saml2.sigver import verify_redirect_signature


def signed(server, issuer, query):
    """Whether the query is signed by a key of the metadata of its issuer."""
    names = {k: query[k] for k in ("SAMLRequest", "RelayState", "SigAlg", "Signature")}
    certificates = server.metadata.certs(issuer, "any", "signing")
    return any(verify_redirect_signature(dict(names), server.sec.sec_backend, c) for c in certificates)


def do(order):
    place = os.getcwd()
    for name in ("key", "certificate"):
        with open(name + ".pem", "w") as f:
            f.write(order[name])
    config = {
        "entityid": order["entity"],
        "key_file": os.path.join(place, "key.pem"),
        "cert_file": os.path.join(place, "certificate.pem"),
        "xmlsec_binary": "/usr/bin/xmlsec1",
        "service": {"idp": {
            "endpoints": {"single_sign_on_service": [(order["sso"], BINDING_HTTP_REDIRECT)]},
            "want_authn_requests_signed": order["signed_requests"],
            "name_id_format": [saml.NAMEID_FORMAT_PERSISTENT],
            "policy": {"default": {"lifetime": {"minutes": 5}, "name_form": saml.NAME_FORMAT_URI}},
        }},
    }
    if not order["metadata_of_service"]:
        return {"metadata": str(metadata.entity_descriptor(IdPConfig().load(config)))}

    # This version looks for signatures of requests inside them, where those by
    # HTTP-Redirect have none: they are verified below, as its own examples do.
    config["service"]["idp"]["want_authn_requests_signed"] = False
    config["metadata"] = {"inline": [order["metadata_of_service"]]}
    server = Server(config=IdPConfig().load(config))
    query = order["query"]
    request = server.parse_authn_request(query["SAMLRequest"], BINDING_HTTP_REDIRECT)
    issuer = request.message.issuer.text
    if order["signed_requests"]:
        if not signed(server, issuer, query):
            raise ValueError("the signature of the request does not hold")
        if signed(server, issuer, dict(query, RelayState=query["RelayState"] + "x")):
            raise ValueError("the signature of the request holds for another one")
    args = server.response_args(request.message)
    binding, destination = server.pick_binding("assertion_consumer_service", request=request.message)
    answer = server.create_authn_response(
        {"mail": [order["mail"]]},
        in_response_to=args["in_response_to"],
        destination=destination,
        sp_entity_id=args["sp_entity_id"],
        name_id=saml.NameID(format=saml.NAMEID_FORMAT_PERSISTENT, text=order["login"]),
        authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport", "authn_auth": order["entity"]},
        sign_response=order["sign_response"],
        sign_assertion=order["sign_assertion"],
        sign_alg=order["signature_algorithm"],
        digest_alg=order["digest_algorithm"],
        encrypt_assertion=False,
    )
    return {
        "response": base64.b64encode(str(answer).encode()).decode(),
        "binding": binding, "destination": destination, "issuer": issuer, "id": request.message.id,
    }


LASSO_METADATA = """<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="%(entity)s">
<IDPSSODescriptor WantAuthnRequestsSigned="%(signed)s" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
<KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>%(certificate)s</X509Certificate></X509Data></KeyInfo></KeyDescriptor>
<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="%(sso)s"/>
</IDPSSODescriptor></EntityDescriptor>"""


def do_lasso(order):
    import lasso
    import time

    own = LASSO_METADATA % {
        "entity": order["entity"], "sso": order["sso"], "signed": str(order["signed_requests"]).lower(),
        "certificate": "".join(l for l in order["certificate"].splitlines() if "-----" not in l),
    }
    if not order["metadata_of_service"]:
        return {"metadata": own}
    server = lasso.Server.newFromBuffers(own, order["key"], None, order["certificate"])
    server.signatureMethod = getattr(lasso, "SIGNATURE_METHOD_" + order["lasso_method"])
    server.addProviderFromBuffer(lasso.PROVIDER_ROLE_SP, order["metadata_of_service"])
    login = lasso.Login(server)
    if order["signed_requests"]:
        login.setSignatureVerifyHint(lasso.PROFILE_SIGNATURE_VERIFY_HINT_FORCE)
        try:
            lasso.Login(server).processAuthnRequestMsg(order["raw_query"].replace("RelayState=", "RelayState=x"))
        except lasso.DsError:
            pass
        else:
            raise ValueError("the signature of the request holds for another one")
    login.processAuthnRequestMsg(order["raw_query"])
    login.validateRequestMsg(True, True)
    stamp = lambda after: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + after))
    login.buildAssertion(lasso.SAML2_AUTHN_CONTEXT_PASSWORD_PROTECTED_TRANSPORT, stamp(0), None, stamp(-60), stamp(300))
    name = lasso.Saml2NameID()
    name.format = lasso.SAML2_NAME_IDENTIFIER_FORMAT_PERSISTENT
    name.content = order["login"]
    login.assertion.subject.nameId = name
    login.buildAuthnResponseMsg()
    return {
        "response": login.msgBody, "binding": "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST", "destination": login.msgUrl,
        "issuer": login.request.issuer.content, "id": login.request.iD,
    }


for line in sys.stdin:
    try:
        order = json.loads(line)
        result = do_lasso(order) if order["lasso_method"] else do(order)
    except Exception as e:
        result = {"refused": repr(e)}
    print(json.dumps(result), flush=True)
