// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
)

var le = binary.LittleEndian

// ZipEntry is an entry of an archive to write, with possible errors.
type ZipEntry struct {
	Name, Content string
	Store         bool   // not compressed
	Descriptor    string // "", "small", "large", "bare" (without a signature) or "none" (announced and missing)
	LocalName     string // another name in the local header
	Extra         string // extra fields in the local header and in the directory
	CRC32         uint32 // added to the checksum
	Size          uint32 // added to the size
	Flags, Method uint16 // added
	At            int    // 1 more than the index of the entry whose content this one uses
	Prefix        string // bytes before the entry
	Behind        string // bytes behind the content, within its length in the archive
	Zip64         bool   // sizes in an extra field
}

// Zip writes a ZIP archive. comment is its archive comment.
func Zip(files []ZipEntry, comment string) []byte {
	var out, directory []byte
	offsets := make([]uint32, len(files))
	for i, f := range files {
		out = append(out, f.Prefix...)
		data, method := []byte(f.Content), uint16(0)
		if !f.Store {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, 9)
			w.Write(data)
			w.Close()
			data, method = b.Bytes(), 8
		}
		data = append(data, f.Behind...)
		crc, size := crc32.ChecksumIEEE([]byte(f.Content))+f.CRC32, uint32(len(f.Content))+f.Size
		flags := f.Flags
		if f.Descriptor != "" {
			flags |= 8
		}
		offsets[i] = uint32(len(out))
		if f.At > 0 {
			offsets[i] = offsets[f.At-1]
		}
		fields := func(crc, compressed, size uint32, name, extra string) []byte {
			b := le.AppendUint16(nil, 20)
			b = le.AppendUint16(b, flags)
			b = le.AppendUint16(b, method+f.Method)
			b = append(b, 1, 2, 3, 0x21) // a time, a date
			for _, v := range []uint32{crc, compressed, size} {
				b = le.AppendUint32(b, v)
			}
			b = le.AppendUint16(b, uint16(len(name)))
			return le.AppendUint16(b, uint16(len(extra)))
		}
		localName := f.Name
		if f.LocalName != "" {
			localName = f.LocalName
		}
		compressed := uint32(len(data))
		if f.At == 0 {
			b := le.AppendUint32(nil, 0x04034b50)
			if f.Descriptor != "" {
				b = append(b, fields(0, 0, 0, localName, f.Extra)...)
			} else {
				b = append(b, fields(crc, compressed, size, localName, f.Extra)...)
			}
			out = append(append(append(append(out, b...), localName...), f.Extra...), data...)
			mark := le.AppendUint32(nil, 0x08074b50)
			small := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, crc), compressed), size)
			switch f.Descriptor {
			case "small":
				out = append(append(out, mark...), small...)
			case "large":
				out = append(append(append(out, mark...), small[:4]...), le.AppendUint64(le.AppendUint64(nil, uint64(compressed)), uint64(size))...)
			case "bare":
				out = append(out, small...)
			}
		}
		extra := f.Extra
		if f.Zip64 {
			extra += string(le.AppendUint64(le.AppendUint64([]byte{1, 0, 16, 0}, uint64(size)), uint64(compressed)))
			size, compressed = 1<<32-1, 1<<32-1
		}
		directory = append(le.AppendUint32(directory, 0x02014b50), 45, 0)
		directory = append(directory, fields(crc, compressed, size, f.Name, extra)...)
		directory = append(directory, make([]byte, 10)...)
		directory = le.AppendUint32(directory, offsets[i])
		directory = append(append(directory, f.Name...), extra...)
	}
	end := le.AppendUint32(nil, 0x06054b50)
	end = append(end, 0, 0, 0, 0)
	end = le.AppendUint16(le.AppendUint16(end, uint16(len(files))), uint16(len(files)))
	end = le.AppendUint32(end, uint32(len(directory)))
	end = le.AppendUint32(end, uint32(len(out)))
	end = le.AppendUint16(end, uint16(len(comment)))
	return append(append(append(out, directory...), end...), comment...)
}
