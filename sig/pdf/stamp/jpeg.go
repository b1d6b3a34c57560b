// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/binary"
)

// stripJPEG removes the metadata from a JPEG file that was decoded successfully: a camera
// stores the location of a photograph there. The orientation of the camera is read first.
func stripJPEG(data []byte) (plain []byte, t orientation) {
	out := append(make([]byte, 0, len(data)+2), 0xFF, 0xD8)
	for at := 2; ; {
		for at < len(data) && data[at] != 0xFF {
			at++ // bytes between segments have no meaning
		}
		for at < len(data) && data[at] == 0xFF {
			at++ // fill bytes
		}
		if at >= len(data) {
			break
		}
		marker := data[at]
		at++
		if marker == 0 || marker == 0x01 || marker >= 0xD0 && marker <= 0xD8 {
			continue // no segment
		}
		if marker == 0xDA || len(data)-at < 2 {
			out = append(append(out, 0xFF, marker), data[at:]...) // the scans, and all that follows
			break
		}
		size := int(be.Uint16(data[at:]))
		if size < 2 || size > len(data)-at {
			out = append(append(out, 0xFF, marker), data[at:]...)
			break
		}
		segment := data[at : at+size]
		at += size
		switch {
		case marker == 0xE1:
			if found := exifOrientation(segment[2:]); found != 0 {
				t = found
			}
			continue
		case marker == 0xEE && bytes.HasPrefix(segment[2:], []byte("Adobe")):
			// It defines the coding of colours, so it stays.
		case marker >= 0xE0 && marker <= 0xEF || marker == 0xFE:
			continue // application data, comments
		}
		out = append(append(out, 0xFF, marker), segment...)
	}
	return out, t
}

// orientation is the one of Exif: 0 or 1 as stored, 2 to 8 rotated or mirrored.
type orientation int

func (t orientation) sideways() bool { return t >= 5 && t <= 8 }

// matrix maps the unit square of the stored image onto that of the shown one.
func (t orientation) matrix() [6]float64 {
	switch t {
	case 2:
		return [6]float64{-1, 0, 0, 1, 1, 0}
	case 3:
		return [6]float64{-1, 0, 0, -1, 1, 1}
	case 4:
		return [6]float64{1, 0, 0, -1, 0, 1}
	case 5:
		return [6]float64{0, -1, -1, 0, 1, 1}
	case 6:
		return [6]float64{0, -1, 1, 0, 0, 1}
	case 7:
		return [6]float64{0, 1, 1, 0, 0, 0}
	case 8:
		return [6]float64{0, 1, -1, 0, 1, 0}
	}
	return [6]float64{1, 0, 0, 1, 0, 0}
}

// exifOrientation returns the orientation in the first directory of an Exif segment, 0 if there
// is none.
func exifOrientation(segment []byte) orientation {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := order.Uint32(tiff[4:])
	if uint64(at)+2 > uint64(len(tiff)) {
		return 0
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			return 0
		}
		const tag, short = 0x0112, 3
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if v := order.Uint16(entries[8:]); v >= 1 && v <= 8 {
				return orientation(v)
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}
