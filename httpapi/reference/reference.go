// Package reference serves a page on which people read the OpenAPI document and send requests with
// a key that they enter. It is Swagger UI over /v1/openapi.yaml. All its files come from the
// service itself, which a content security policy enforces. The key stays in the page's memory and
// is not stored.
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

// Index is the name of the page. Its other files are below its address.
const Index = "index.html"

//go:embed files
var own embed.FS

// policy restricts the page to its own origin. Swagger UI's icons are data URLs in its style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Files holds the page and its files, by name.
type Files map[string]file

// file is kept compressed, as it is sent to almost every client.
type file struct {
	contentType string
	gzipped     []byte
}

// Load returns the embedded files.
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

// Serve answers with a file. If there is none of that name, it returns false and writes nothing.
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
	_, _ = w.Write(content) // fails only if the client has gone
	return true
}

// acceptsGzip reports whether a client accepts gzip (RFC 9110, section 12.5.3), with a weight above
// zero.
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

// contentTypeOf returns the media type for the extension. It does not depend on the machine's own
// table.
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

// read returns embedded content. It panics on an error, which means that the binary is broken.
func read(content []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("reference: the files in the binary cannot be read: %v", err))
	}
	return content
}
