// SPDX-License-Identifier: Apache-2.0

package engine

/*
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

static X509 *certify(EVP_PKEY *key) {
	X509 *x = X509_new();
	X509_NAME *name = X509_NAME_new();
	int ok = x && name && X509_set_version(x, 2) &&
		X509_NAME_add_entry_by_txt(name, "C", MBSTRING_UTF8, (const unsigned char *)"RU", -1, -1, 0) &&
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)"Signer", -1, -1, 0) &&
		ASN1_INTEGER_set(X509_get_serialNumber(x), 4097) &&
		X509_gmtime_adj(X509_getm_notBefore(x), 0) && X509_gmtime_adj(X509_getm_notAfter(x), 86400) &&
		X509_set_subject_name(x, name) && X509_set_issuer_name(x, name) &&
		X509_set_pubkey(x, key) && X509_sign(x, key, NULL) > 0;
	X509_NAME_free(name);
	if (!ok) { X509_free(x); return NULL; }
	return x;
}

// cms makes a detached message with the certificate and writes it as DER.
static int cms(EVP_PKEY *key, X509 *certificate, const unsigned char *data, int n, int rounds) {
	int length = 0;
	while (rounds-- > 0) {
		unsigned char *der = NULL;
		BIO *in = BIO_new_mem_buf(data, n);
		CMS_ContentInfo *m = CMS_sign(certificate, key, NULL, in, CMS_DETACHED | CMS_BINARY | CMS_NOSMIMECAP);
		length = m ? i2d_CMS_ContentInfo(m, &der) : 0;
		CMS_ContentInfo_free(m);
		BIO_free(in);
		OPENSSL_free(der);
		if (length <= 0) return 0;
	}
	return length;
}
*/
import "C"

// A Signer is a key with a certificate.
type Signer struct {
	key         *Key
	certificate *C.X509
}

// Certify returns the key with a new self-signed certificate.
func (k *Key) Certify() (*Signer, error) {
	x := C.certify(k.key)
	if x == nil {
		return nil, failure("making a certificate")
	}
	return &Signer{k, x}, nil
}

// SignCMS makes a detached CMS message of data, rounds times. Content type, time and
// digest are signed attributes. The message includes the certificate.
func (s *Signer) SignCMS(data []byte, rounds int) error {
	if C.cms(s.key.key, s.certificate, pointer(data), C.int(len(data)), C.int(rounds)) == 0 {
		return failure("CMS")
	}
	return nil
}
