// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"

	"tamga/internal/domain/fault"
)

// copier writes values as JSON text in their order of arrival, without white space between
// them.
type copier struct {
	r    *reader
	out  []byte
	path int // steps to the value that is copied
}

// copyObject reads the object at the reader and returns its text. An object of more than
// ShortBlob bytes is a fault.
func (r *reader) copyObject() ([]byte, error) {
	c := &copier{r: r, path: len(r.path)}
	err := c.value()
	return c.out, err
}

func (c *copier) put(p ...byte) error {
	if len(c.out)+len(p) > ShortBlob {
		c.r.path = c.r.path[:c.path]
		return c.r.wrong(fmt.Sprintf("an object of at most %d bytes", ShortBlob))
	}
	c.out = append(c.out, p...)
	return c.r.keep(len(p))
}

// quote writes the text that the reader read last as a string.
func (c *copier) quote() error {
	text, err := json.Marshal(string(c.r.text))
	if err != nil {
		return err
	}
	return c.put(text...)
}

// comma writes a comma before every value except the first.
func (c *copier) comma(first bool) error {
	if first {
		return nil
	}
	return c.put(',')
}

func (c *copier) value() error {
	r := c.r
	kind, err := r.token()
	if err != nil {
		return err
	}
	switch kind {
	case '"':
		r.r++
		// One byte more than fits makes put refuse it.
		if _, err := r.str(ShortBlob + 1); err != nil {
			return err
		}
		return c.quote()
	case '{':
		return c.object()
	case '[':
		return c.array()
	case 't', 'f', 'n':
		word := map[byte]string{'t': "true", 'f': "false", 'n': "null"}[kind]
		if err := r.literal(word); err != nil {
			return err
		}
		return c.put([]byte(word)...)
	}
	if err := r.number(maxNumber); err != nil {
		return err
	}
	return c.put(r.text...)
}

func (c *copier) object() error {
	if err := c.put('{'); err != nil {
		return err
	}
	first, seen := true, keys{}
	err := c.r.object(func(name []byte, long bool) error {
		if long {
			return fault.Newf(fault.InvalidParameters, "%s has a key longer than %d bytes", c.r.where(), maxName)
		}
		if err := c.r.keep(entrySize + len(name)); err != nil {
			return err
		}
		key := string(name)
		c.r.path = append(c.r.path, step{key, -1})
		if err := seen.add(c.r, key); err != nil {
			return err
		}
		if err := c.comma(first); err != nil {
			return err
		}
		first = false
		if err := c.quote(); err != nil {
			return err
		}
		if err := c.put(':'); err != nil {
			return err
		}
		if err := c.value(); err != nil {
			return err
		}
		c.r.path = c.r.path[:len(c.r.path)-1]
		return nil
	})
	if err != nil {
		return err
	}
	return c.put('}')
}

func (c *copier) array() error {
	if err := c.put('['); err != nil {
		return err
	}
	err := c.r.array(func(i int) error {
		if err := c.comma(i == 0); err != nil {
			return err
		}
		return c.value()
	})
	if err != nil {
		return err
	}
	return c.put(']')
}
