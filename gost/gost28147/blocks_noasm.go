// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package gost28147

// wide is empty, because this build has no assembly.
type wide struct{}

func (*wide) set(*[8][16]byte) {}

func (*block) encryptWide(dst, src []byte) (done int) { return 0 }

// encryptFeedback enciphers nothing: this build has no vectors.
func (b *block) encryptFeedback(_, _ []byte, _ *uint64) int { return 0 }
