// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"

	"tamga/internal/config"
	"tamga/sig"
	"tamga/sig/pdf"
)

// maxLogo is the size of the file of the logo, in bytes.
const maxLogo = 1 << 20

// withLogo returns the formats with the logo of the installation on their marks.
func withLogo(c *config.Config, formats sig.Formats) (sig.Formats, error) {
	name := c.PDF.Logo
	if name == "" {
		return formats, nil
	}
	file, err := os.Open(c.Path(name))
	if err != nil {
		return nil, fmt.Errorf("pdf.logo: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxLogo+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("pdf.logo: %w", err)
	case len(data) > maxLogo:
		return nil, fmt.Errorf("pdf.logo: %s has more than %d bytes; a smaller image expected", name, maxLogo)
	}
	logo, err := pdf.ReadLogo(data)
	if err != nil {
		return nil, fmt.Errorf("pdf.logo: %s %w", name, err)
	}
	for _, f := range formats {
		if p, ok := f.(*pdf.Format); ok {
			p.Logo = logo
		}
	}
	return formats, nil
}
