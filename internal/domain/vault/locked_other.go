// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package vault

import "errors"

// lockedMemory fails: on other systems PINs are not remembered.
func lockedMemory(int) ([]byte, func([]byte), error) {
	return nil, nil, errors.New("vault: this system locks no memory for this program")
}
