// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"reflect"
	"testing"

	"tamga/internal/web/rest"
)

// TestParameterIsText checks that a value that may be a text is not described as Base64.
func TestParameterIsText(t *testing.T) {
	type parameters struct {
		Value    rest.Blob `api:"parameter"`
		Document rest.Blob
	}
	of := reflect.TypeFor[parameters]()
	d := &describer{}
	if got := d.field(of.Field(0)); got["type"] != "string" || got["contentEncoding"] != nil || got["description"] == nil {
		t.Errorf("%v", got)
	}
	if got := d.field(of.Field(1)); got["contentEncoding"] != "base64" {
		t.Errorf("%v", got)
	}
}
