// Package reference is the page on which people read the API's description and try calls, with a
// key that they enter. It is Swagger UI over /v1/openapi.yaml. Everything that it loads comes from
// the service itself, so it works without any other host; a content security policy holds it to
// that. The key stays in the page: it is stored nowhere and gone when the page is.
package reference

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/swaggest/swgui/v5/static"
)

// Index is the name of the page itself; its other files stand below its address.
const Index = "index.html"

//go:embed files
var own embed.FS

// policy lets the page load from its own origin and nowhere else. Swagger UI's icons are data in
// its style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Files are the page and what it loads, by name.
type Files map[string]file

// file is kept as it is sent to nearly everyone: compressed.
type file struct {
	contentType string
	gzipped     []byte
}

// Load gives the files that are in the binary.
func Load() Files {
	files := Files{}
	for _, name := range []string{Index, "reference.js", "reference.css"} {
		files[name] = file{contentTypeOf(name), compress(read(own.ReadFile("files/" + name)))}
	}
	for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css"} {
		files[name] = file{contentTypeOf(name), read(static.FS.ReadFile(name + ".gz"))}
	}
	files["favicon-32x32.png"] = file{
		contentTypeOf("favicon-32x32.png"),
		compress(read(static.FS.ReadFile("favicon-32x32.png"))),
	}
	return files
}

// Serve answers with a file; false when there is none of that name, and then nothing is answered.
func (f Files) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	asset, ok := f[name]
	if !ok {
		return false
	}
	content, header := asset.gzipped, w.Header()
	header.Set("Content-Type", asset.contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "public, max-age=3600")
	header.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
	} else {
		content = decompress(content)
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // a client that does not take it is the client's affair
	return true
}

// acceptsGzip says whether gzip is among the codings that a client takes (RFC 9110, section
// 12.5.3); one that it gives no weight is not.
func acceptsGzip(values []string) bool {
	for _, value := range values {
		for coding := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			q, err := strconv.ParseFloat(strings.TrimPrefix(weight, "q="), 64)
			if strings.EqualFold(name, "gzip") && (err != nil || q > 0) {
				return true
			}
		}
	}
	return false
}

// contentTypeOf gives the media type by the extension. The machine's own table is not asked: it may
// have others.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	default:
		return "image/png"
	}
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		panic(fmt.Sprintf("reference: memory takes no more: %v", err))
	}
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("reference: memory takes no more: %v", err))
	}
	return out.Bytes()
}

func decompress(gzipped []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		panic(fmt.Sprintf("reference: a file in the binary is no gzip: %v", err))
	}
	return read(io.ReadAll(r))
}

// read passes on what is in the binary: without it the binary is broken.
func read(content []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("reference: the files in the binary cannot be read: %v", err))
	}
	return content
}
