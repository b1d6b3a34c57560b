// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/idp"
	"tamga/internal/config"
)

// TestMetadataFileBounded: a metadata file that is too large is not read to its end.
func TestMetadataFileBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metadata.xml")
	if err := os.WriteFile(file, []byte("<a/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, idp.MaxMetadata+1); err != nil {
		t.Fatal(err)
	}
	_, err := samlProvider(&config.Config{}, config.External{SAML: config.SAML{MetadataFile: file}}, "external", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "is larger than 64.0 MiB") {
		t.Errorf("%v", err)
	}
}
