//go:build !amd64 || purego

package twin

// The assembly there is runs on amd64 alone.
const (
	MULX = false // see the twin of this file
	IFMA = false
)

// Each calls f once: there is but one twin.
func Each(f func(name string)) { f("portable") }
