package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"hubcloud/httpapi/docpages"
)

// longestPadding is the most bytes by which the size of a compressed page varies by chance.
const longestPadding = 64

// zippers are writers that were used: each has 800 KB.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// compress returns content compressed with gzip.
func compress(content []byte, padding int) []byte {
	var compressed bytes.Buffer
	w := zippers.Get().(*gzip.Writer)
	defer zippers.Put(w)
	w.Reset(&compressed)
	w.Comment = strings.Repeat("-", padding)
	_, err := w.Write(content)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("portal: compress: %v", err)) // a buffer fails at nothing
	}
	return compressed.Bytes()
}

// compressed returns a page compressed, or nil if its size could reveal what is on it: who makes a
// browser load a page with text of their own in its address, and sees the sizes of the answers, can
// guess what else is on the page (BREACH). So an answer is compressed only if a page of the portal
// or the person asked for it, its form tokens differ each time (maskToken), and its size varies.
// Answers to forms, which may show a new secret, are not.
func (req *request) compressed(page []byte) []byte {
	site := req.http.Header.Get("Sec-Fetch-Site") // "" of old browsers
	if req.http.Method == http.MethodPost || site != "same-origin" && site != "none" ||
		!docpages.Accepts(req.http.Header["Accept-Encoding"], "gzip") {
		return nil
	}
	return compress(page, mathrand.IntN(longestPadding))
}

// maskToken returns a form token as it stands on pages: a random mask and the masked token.
func maskToken(token string) string {
	mask := make([]byte, len(token))
	_, _ = rand.Read(mask) // never fails
	masked := make([]byte, len(token))
	subtle.XORBytes(masked, mask, []byte(token))
	return base64.RawURLEncoding.EncodeToString(append(mask, masked...))
}

// unmaskToken returns the form token of which maskToken returned the text; nil for other texts.
func unmaskToken(text string) []byte {
	both, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(both)%2 != 0 {
		return nil
	}
	token := make([]byte, len(both)/2)
	subtle.XORBytes(token, both[:len(token)], both[len(token):])
	return token
}
