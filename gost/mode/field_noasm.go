// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package mode

// addProducts adds to z the products of the blocks of a and b, which must have the
// same length.
func (z *element) addProducts(a, b []byte) { z.addProductsGeneric(a, b) }
