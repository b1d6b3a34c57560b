// SPDX-License-Identifier: Apache-2.0

package sig

// Level is how long a signature can be proven to be valid. Levels are ordered: each has what the one
// before it has, and more.
type Level int

// The levels, with their names in ETSI EN 319 122, EN 319 132 and EN 319 142 and in RFC 5126.
const (
	// LevelBasic is the signature alone (B-B; BES).
	LevelBasic Level = iota
	// LevelTime has a time stamp over the signature value (B-T; T).
	LevelTime
	// LevelLongTerm also has the certificates and the revocation data of all who signed (B-LT;
	// X-L).
	LevelLongTerm
	// LevelArchive also has time stamps over all of that, which are renewed before their
	// algorithms or certificates end (B-LTA; A).
	LevelArchive
)

// String returns the name of the level for people.
func (l Level) String() string {
	switch l {
	case LevelBasic:
		return "basic"
	case LevelTime:
		return "with time"
	case LevelLongTerm:
		return "long-term"
	case LevelArchive:
		return "archive"
	}
	return "unknown"
}
