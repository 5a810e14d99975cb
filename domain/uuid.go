package domain

import (
	"encoding/hex"
	"time"
)

// NewUUIDv7 returns a UUID of version 7 (RFC 9562, section 5.7), made from a time in milliseconds
// and random bytes. UUIDs sort by their time, so lists sorted by id are oldest first.
func NewUUIDv7(t time.Time, entropy [10]byte) string {
	var b [16]byte
	ms := uint64(t.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	copy(b[6:], entropy[:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80

	return formatUUID(b)
}

func formatUUID(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// parseUUID returns the bytes of a UUID. IsUUID must hold for s.
func parseUUID(s string) (b [16]byte) {
	for i, n := range [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		b[i] = hexDigit(s[n])<<4 | hexDigit(s[n+1])
	}
	return b
}

// IsUUID reports whether s is a UUID as this service writes them: 8-4-4-4-12 hexadecimal digits in
// lower case. Any other text is no id, and must not become part of a subject.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

// isLowerHex reports whether s is n hexadecimal digits in lower case.
func isLowerHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return true
}

func isHexDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// hexDigit returns the value of a hexadecimal digit. isHexDigit must hold for c.
func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}
