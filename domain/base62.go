package domain

import "math/big"

// base62 is the alphabet of keys. None of its characters needs escaping in a URL, a header, a shell
// or a NATS subject, and a double click selects a whole key.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// encodeBase62 returns a big-endian number in exactly width digits. Leading digits that do not fit
// are cut off.
func encodeBase62(b []byte, width int) string {
	out := make([]byte, width)
	n, radix, digit := new(big.Int).SetBytes(b), big.NewInt(62), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, radix, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			return false
		}
	}
	return true
}
