// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/sig"
	"tamga/sig/pdf"
)

// maxLogo is the size of the file of the logo, in bytes.
const maxLogo = 1 << 20

// readLogo reads the logo of the installation; "" for none.
func readLogo(c *config.Config) (string, error) {
	name := c.PDF.Logo
	if name == "" {
		return "", nil
	}
	data, err := files.Bounded(c.Path(name), maxLogo)
	if err != nil {
		return "", fmt.Errorf("pdf.logo: %w", err)
	}
	logo, err := pdf.ReadLogo(data)
	if err != nil {
		return "", fmt.Errorf("pdf.logo: %s %w", name, err)
	}
	return logo, nil
}

// withLogo returns the formats with the logo of the installation on their marks.
func withLogo(c *config.Config, formats sig.Formats) (sig.Formats, error) {
	logo, err := readLogo(c)
	if err != nil {
		return nil, err
	}
	for _, f := range formats {
		if p, ok := f.(*pdf.Format); ok {
			p.Logo = logo
		}
	}
	return formats, nil
}
