// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"strconv"
)

// object is one of nil (null), bool, number, text, name, array, dict, ref and *stream.
type object any

type (
	// number keeps its characters, so that it is written as it was read.
	number string
	// text is a decrypted string.
	text []byte
	// name is a name without its slash and with escapes resolved.
	name  string
	array []object
	// dict keeps its order. Of entries with the same key the last one counts.
	dict []entry
	// ref is an indirect reference.
	ref struct{ num, gen int }
	// verbatim is already in PDF syntax and is written unchanged, such as a placeholder.
	verbatim string
)

type entry struct {
	key   name
	value object
}

// stream is a dictionary with bytes, which are in the file or new.
type stream struct {
	dict   dict
	offset int64 // of the bytes in the file
	id     ref   // its own number, for decryption
	fresh  []byte
}

// get returns the unresolved value of a key, nil if there is none.
func (d dict) get(key name) object {
	for i := len(d) - 1; i >= 0; i-- {
		if d[i].key == key {
			return d[i].value
		}
	}
	return nil
}

func (d dict) has(key name) bool { return d.get(key) != nil }

// with returns a copy in which the key has the value; nil removes it.
func (d dict) with(key name, value object) dict {
	out := make(dict, 0, len(d)+1)
	placed := value == nil
	for _, e := range d {
		if e.key != key {
			out = append(out, e)
		} else if !placed {
			out, placed = append(out, entry{key, value}), true
		}
	}
	if !placed {
		out = append(out, entry{key, value})
	}
	return out
}

// integer returns the value of an integer number.
func integer(o object) (int64, bool) {
	n, ok := o.(number)
	if !ok {
		return 0, false
	}
	if v, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return v, true
	}
	// All viewers read 12.0 as an integer.
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != float64(int64(f)) || f > 1<<52 || f < -(1<<52) {
		return 0, false
	}
	return int64(f), true
}

// real returns the value of any number.
func real(o object) (float64, bool) {
	n, ok := o.(number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}

func intObject(n int64) number { return number(strconv.FormatInt(n, 10)) }
