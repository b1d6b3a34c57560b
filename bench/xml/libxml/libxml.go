// SPDX-License-Identifier: Apache-2.0

// Package libxml runs the functions of libxml2 and xmlsec (with OpenSSL) with which
// Tamga is compared: Canonical makes the exclusive canonical form of a document, and
// Key.Sign fills its signature template. The package is for benchmarks only.
package libxml

/*
#cgo pkg-config: xmlsec1-openssl
#include <string.h>
#include <libxml/tree.h>
#include <libxml/parser.h>
#include <libxml/c14n.h>
#include <xmlsec/xmlsec.h>
#include <xmlsec/xmltree.h>
#include <xmlsec/xmldsig.h>
#include <xmlsec/crypto.h>
#include <xmlsec/keys.h>
#include <xmlsec/errors.h>

static int start(void) {
	xmlInitParser();
	if (xmlSecInit() < 0 || xmlSecCryptoAppInit(NULL) < 0 || xmlSecCryptoInit() < 0) return -1;
	return 0;
}

// sink counts the bytes of a canonical form and drops them.
static int sink(void *context, const char *buffer, int length) { *(long *)context += length; return length; }
static int done(void *context) { return 0; }

// canonical reads a document, makes its exclusive canonical form and discards it. It
// returns the length of the form, or -1.
static long canonical(const char *text, int length) {
	long size = 0;
	xmlDocPtr doc = xmlReadMemory(text, length, NULL, NULL, XML_PARSE_HUGE | XML_PARSE_NONET);
	if (doc == NULL) return -1;
	xmlOutputBufferPtr out = xmlOutputBufferCreateIO(sink, done, &size, NULL);
	int ok = out != NULL && xmlC14NExecute(doc, NULL, NULL, XML_C14N_EXCLUSIVE_1_0, NULL, 0, out) >= 0;
	if (out != NULL && xmlOutputBufferClose(out) < 0) ok = 0;
	xmlFreeDoc(doc);
	return ok ? size : -1;
}

// load reads a private key (PKCS #8) and its certificate, both DER.
static xmlSecKeyPtr load(const void *key, int keyLength, const void *cert, int certLength) {
	xmlSecKeyPtr k = xmlSecCryptoAppKeyLoadMemory(key, keyLength, xmlSecKeyDataFormatDer, NULL, NULL, NULL);
	if (k != NULL && xmlSecCryptoAppKeyCertLoadMemory(k, cert, certLength, xmlSecKeyDataFormatCertDer) < 0) {
		xmlSecKeyDestroy(k);
		return NULL;
	}
	return k;
}

// sign reads a document, fills the template in it and writes the result, which the
// caller frees.
static xmlChar *sign(xmlSecKeyPtr key, const char *text, int length, int *size) {
	xmlChar *out = NULL;
	xmlDocPtr doc = xmlReadMemory(text, length, NULL, NULL, XML_PARSE_NONET);
	if (doc == NULL) return NULL;
	xmlNodePtr node = xmlSecFindNode(xmlDocGetRootElement(doc), xmlSecNodeSignature, xmlSecDSigNs);
	xmlSecDSigCtxPtr context = xmlSecDSigCtxCreate(NULL);
	if (node != NULL && context != NULL) {
		context->signKey = xmlSecKeyDuplicate(key);
		if (context->signKey != NULL && xmlSecDSigCtxSign(context, node) >= 0) xmlDocDumpMemory(doc, &out, size);
	}
	if (context != NULL) xmlSecDSigCtxDestroy(context);
	xmlFreeDoc(doc);
	return out;
}

static void release(xmlChar *text) { xmlFree(text); }
*/
import "C"

import (
	"errors"
	"unsafe"
)

func init() {
	if C.start() != 0 {
		panic("libxml: xmlsec does not start")
	}
}

// Canonical reads a document, makes its exclusive canonical form and returns the length
// of the form.
func Canonical(document []byte) (int, error) {
	n := C.canonical((*C.char)(unsafe.Pointer(&document[0])), C.int(len(document)))
	if n < 0 {
		return 0, errors.New("libxml: no canonical form")
	}
	return int(n), nil
}

// Key is a private key with its certificate. It is never freed.
type Key struct{ key C.xmlSecKeyPtr }

// Load reads a private key (PKCS #8) and its certificate, both DER.
func Load(key, certificate []byte) (*Key, error) {
	k := C.load(unsafe.Pointer(&key[0]), C.int(len(key)), unsafe.Pointer(&certificate[0]), C.int(len(certificate)))
	if k == nil {
		return nil, errors.New("libxml: xmlsec does not read the key")
	}
	return &Key{k}, nil
}

// Sign reads a document, fills the template in it and returns the result.
func (k *Key) Sign(template []byte) ([]byte, error) {
	var size C.int
	out := C.sign(k.key, (*C.char)(unsafe.Pointer(&template[0])), C.int(len(template)), &size)
	if out == nil {
		return nil, errors.New("libxml: xmlsec does not sign")
	}
	defer C.release(out)
	return C.GoBytes(unsafe.Pointer(out), size), nil
}
