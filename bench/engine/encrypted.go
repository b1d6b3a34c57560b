// SPDX-License-Identifier: Apache-2.0

package engine

/*
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

// message encrypts data for the certificate, as openssl cms does: the key of the recipient must know the cipher.
static CMS_ContentInfo *message(X509 *certificate, const EVP_CIPHER *cipher, BIO *in) {
	CMS_ContentInfo *m = CMS_encrypt(NULL, in, cipher, CMS_BINARY | CMS_PARTIAL);
	CMS_RecipientInfo *to = m ? CMS_add1_recipient_cert(m, certificate, CMS_KEY_PARAM) : NULL;
	EVP_PKEY_CTX *c = to ? CMS_RecipientInfo_get0_pkey_ctx(to) : NULL;
	if (c && EVP_PKEY_CTX_ctrl(c, -1, EVP_PKEY_OP_ENCRYPT, EVP_PKEY_CTRL_CIPHER, EVP_CIPHER_get_nid(cipher), NULL) > 0 &&
		CMS_final(m, in, NULL, CMS_BINARY)) return m;
	CMS_ContentInfo_free(m);
	return NULL;
}

// encrypted encrypts data for the certificate, rounds times. The last message is written to out.
static int encrypted(X509 *certificate, const char *name, const unsigned char *data, int n, int rounds, unsigned char **out) {
	const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
	int length = 0;
	while (cipher && rounds-- > 0) {
		unsigned char *der = NULL;
		BIO *in = BIO_new_mem_buf(data, n);
		CMS_ContentInfo *m = message(certificate, cipher, in);
		length = m ? i2d_CMS_ContentInfo(m, &der) : 0;
		CMS_ContentInfo_free(m);
		BIO_free(in);
		if (length > 0 && rounds == 0 && out) *out = der;
		else OPENSSL_free(der);
		if (length <= 0) break;
	}
	return length;
}

// decrypted decrypts a message, rounds times. broken: the program refuses the message at its end.
static int decrypted(EVP_PKEY *key, X509 *certificate, const unsigned char *message, int n, int rounds, int broken) {
	while (rounds-- > 0) {
		const unsigned char *at = message;
		CMS_ContentInfo *m = d2i_CMS_ContentInfo(NULL, &at, n);
		BIO *out = BIO_new(BIO_s_null());
		int ok = m && out && CMS_decrypt(m, key, certificate, NULL, out, CMS_BINARY) == !broken;
		BIO_free(out);
		CMS_ContentInfo_free(m);
		if (!ok) return 0;
		ERR_clear_error();
	}
	return 1;
}
*/
import "C"

import "unsafe"

// EncryptCMS encrypts data for the signer's own certificate by key transport, rounds times, with the content cipher
// of a name such as gost89. It returns the last message, DER, if it is wanted.
func (s *Signer) EncryptCMS(cipher string, data []byte, rounds int, wanted bool) ([]byte, error) {
	name := C.CString(cipher)
	defer C.free(unsafe.Pointer(name))
	var der *C.uchar
	out := &der
	if !wanted {
		out = nil
	}
	n := C.encrypted(s.certificate, name, pointer(data), C.int(len(data)), C.int(rounds), out)
	if n <= 0 {
		return nil, failure("encrypting with " + cipher)
	}
	if !wanted {
		return nil, nil
	}
	defer C.free(unsafe.Pointer(der)) // OPENSSL_free is free unless a program replaces it
	return C.GoBytes(unsafe.Pointer(der), n), nil
}

// DecryptCMS decrypts a message for the signer's certificate, rounds times. broken: the message is one that the program
// refuses at its end.
func (s *Signer) DecryptCMS(message []byte, rounds int, broken bool) error {
	refuses := C.int(0)
	if broken {
		refuses = 1
	}
	if C.decrypted(s.key.key, s.certificate, pointer(message), C.int(len(message)), C.int(rounds), refuses) == 0 {
		return failure("decrypting")
	}
	return nil
}
