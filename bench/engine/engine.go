// SPDX-License-Identifier: Apache-2.0

// Package engine runs the algorithms of OpenSSL's gost-engine in this process, so that
// they can be timed in turns with ours on the same core. Call Start first. Loops run in
// C, so a call crosses from Go to C only once for any number of rounds. The package is
// for benchmarks only.
package engine

/*
#cgo LDFLAGS: -lcrypto
#cgo CFLAGS: -Wno-deprecated-declarations
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

static int start(const char *path) {
	OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS | OPENSSL_INIT_ADD_ALL_DIGESTS | OPENSSL_INIT_ENGINE_DYNAMIC, NULL);
	ENGINE *e = ENGINE_by_id("dynamic");
	if (!e) return 0;
	if (!ENGINE_ctrl_cmd_string(e, "SO_PATH", path, 0) || !ENGINE_ctrl_cmd_string(e, "ID", "gost", 0) ||
		!ENGINE_ctrl_cmd_string(e, "LOAD", NULL, 0) || !ENGINE_init(e)) return 0;
	return ENGINE_set_default(e, ENGINE_METHOD_ALL);
}

static int digest(const char *name, const unsigned char *data, size_t n, int rounds, unsigned char *out) {
	const EVP_MD *md = EVP_get_digestbyname(name);
	unsigned int len = 0;
	if (!md) return 0;
	while (rounds-- > 0)
		if (!EVP_Digest(data, n, out, &len, md, NULL)) return 0;
	return len;
}

static EVP_PKEY *generate(int nid, const char *paramset) {
	EVP_PKEY *key = NULL;
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(nid, NULL);
	if (!c) return NULL;
	if (EVP_PKEY_keygen_init(c) <= 0 || EVP_PKEY_CTX_ctrl_str(c, "paramset", paramset) <= 0 || EVP_PKEY_keygen(c, &key) <= 0) key = NULL;
	EVP_PKEY_CTX_free(c);
	return key;
}

static int generate_many(int nid, const char *paramset, int rounds) {
	while (rounds-- > 0) {
		EVP_PKEY *k = generate(nid, paramset);
		if (!k) return 0;
		EVP_PKEY_free(k);
	}
	return 1;
}

static int sign(EVP_PKEY *key, const unsigned char *md, size_t n, int rounds, unsigned char *sig, size_t *len) {
	size_t room = *len;
	while (rounds-- > 0) {
		EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
		*len = room;
		if (!c || EVP_PKEY_sign_init(c) <= 0 || EVP_PKEY_sign(c, sig, len, md, n) <= 0) return 0;
		EVP_PKEY_CTX_free(c);
	}
	return 1;
}

static int verify(EVP_PKEY *key, const unsigned char *md, size_t n, int rounds, const unsigned char *sig, size_t len) {
	while (rounds-- > 0) {
		EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
		if (!c || EVP_PKEY_verify_init(c) <= 0 || EVP_PKEY_verify(c, sig, len, md, n) <= 0) return 0;
		EVP_PKEY_CTX_free(c);
	}
	return 1;
}

static int derive(EVP_PKEY *key, EVP_PKEY *peer, const unsigned char *ukm, int rounds, unsigned char *out) {
	while (rounds-- > 0) {
		size_t len = 64;
		EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
		int ok = c && EVP_PKEY_derive_init(c) > 0 && EVP_PKEY_derive_set_peer(c, peer) > 0 &&
			EVP_PKEY_CTX_ctrl(c, -1, EVP_PKEY_OP_DERIVE, EVP_PKEY_CTRL_SET_IV, 8, (void *)ukm) > 0 && EVP_PKEY_derive(c, out, &len) > 0;
		EVP_PKEY_CTX_free(c);
		if (!ok) return 0;
	}
	return 1;
}

static int encrypt(const char *name, const unsigned char *key, const unsigned char *iv, unsigned char *data, int n, int rounds) {
	const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
	if (!cipher) return 0;
	while (rounds-- > 0) {
		int len;
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
		int ok = c && EVP_EncryptInit_ex(c, cipher, NULL, key, iv) && EVP_EncryptUpdate(c, data, &len, data, n);
		EVP_CIPHER_CTX_free(c);
		if (!ok) return 0;
	}
	return 1;
}

static const char *reason(void) { return ERR_reason_error_string(ERR_peek_last_error()); }
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"
)

// Start finds and loads gost-engine.
func Start() error {
	places, err := filepath.Glob("/usr/lib/*/engines-3/gost.so")
	if err != nil || len(places) == 0 {
		return errors.New("engine: gost.so is not installed (Debian: libengine-gost-openssl)")
	}
	path := C.CString(places[0])
	defer C.free(unsafe.Pointer(path))
	if C.start(path) == 0 {
		return failure("loading " + places[0])
	}
	return nil
}

func failure(what string) error {
	return fmt.Errorf("engine: %s: %s", what, C.GoString(C.reason()))
}

func pointer(b []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(b))) }

// Digest hashes data rounds times with the digest of this name, such as
// md_gost12_256, and returns the last value.
func Digest(name string, data []byte, rounds int) ([]byte, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var out [64]byte
	n := C.digest(text, pointer(data), C.size_t(len(data)), C.int(rounds), (*C.uchar)(unsafe.Pointer(&out)))
	if n == 0 {
		return nil, failure(name)
	}
	return out[:n], nil
}

// Encrypt enciphers data in place, rounds times.
func Encrypt(name string, key, iv, data []byte, rounds int) error {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if C.encrypt(text, pointer(key), pointer(iv), pointer(data), C.int(len(data)), C.int(rounds)) == 0 {
		return failure(name)
	}
	return nil
}

// The kinds of keys, as numbers of OpenSSL.
const (
	GOST2001    = C.NID_id_GostR3410_2001
	GOST2012256 = C.NID_id_GostR3410_2012_256
	GOST2012512 = C.NID_id_GostR3410_2012_512
)

// Key is a key pair of the engine.
type Key struct{ key *C.EVP_PKEY }

// Generate returns a new key of a parameter set, given by its short name: A, B, C, XA,
// TCA ...
func Generate(kind int, set string) (*Key, error) {
	text := C.CString(set)
	defer C.free(unsafe.Pointer(text))
	k := C.generate(C.int(kind), text)
	if k == nil {
		return nil, failure("generating a key over " + set)
	}
	return &Key{k}, nil
}

// GenerateMany generates keys and discards them.
func GenerateMany(kind int, set string, rounds int) error {
	text := C.CString(set)
	defer C.free(unsafe.Pointer(text))
	if C.generate_many(C.int(kind), text, C.int(rounds)) == 0 {
		return failure("generating keys over " + set)
	}
	return nil
}

// Sign signs the digest rounds times and returns the last value.
func (k *Key) Sign(digest []byte, rounds int) ([]byte, error) {
	var out [128]byte
	n := C.size_t(len(out))
	if C.sign(k.key, pointer(digest), C.size_t(len(digest)), C.int(rounds), (*C.uchar)(unsafe.Pointer(&out)), &n) == 0 {
		return nil, failure("signing")
	}
	return out[:n], nil
}

// Verify checks the value rounds times.
func (k *Key) Verify(digest, value []byte, rounds int) error {
	if C.verify(k.key, pointer(digest), C.size_t(len(digest)), C.int(rounds), pointer(value), C.size_t(len(value))) == 0 {
		return failure("verifying")
	}
	return nil
}

// Derive agrees on a key with peer rounds times (VKO, RFC 7836, section 4.3, or
// RFC 4357, section 5.2).
func (k *Key) Derive(peer *Key, ukm []byte, rounds int) error {
	var out [64]byte
	if C.derive(k.key, peer.key, pointer(ukm), C.int(rounds), (*C.uchar)(unsafe.Pointer(&out))) == 0 {
		return failure("agreeing on a key")
	}
	return nil
}
