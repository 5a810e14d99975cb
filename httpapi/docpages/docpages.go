// Package docpages serves the pages that describe the API and the hub protocol, with the documents
// that they show.
//
//   - Reference is a page on which people read the OpenAPI document and send requests with a key that
//     they enter. It is made when the program starts. The key stays in the page's memory.
//   - Link is the description of the hub protocol below /link/: a page for people, made from
//     hubbridge/protocol/README.md, and the AsyncAPI document and the JSON Schemas as they are. Pages
//     of other origins may fetch the documents, so that viewers of AsyncAPI documents in a browser can
//     open them.
//   - Documents are the OpenAPI documents, 3.1 and 3.2 (OpenAPI32).
//   - Guides are the guides, as pages and as Markdown, and llms.txt, the list of everything for
//     language models. The pages need no script, which only adds buttons that copy code.
//
// All files of a page come from the service itself, which a content security policy enforces.
package docpages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"hubcloud/hubbridge/protocol"
)

//go:embed pages
var own embed.FS

const (
	// nothingElse is what the policies of all pages have in common.
	nothingElse = "default-src 'none'; style-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	textPolicy      = nothingElse + "script-src 'self'; img-src 'self'"
	referencePolicy = textPolicy + "; connect-src 'self'"
)

// Look is what the pages share with the portal: the tokens of the design, a style sheet, and the icon,
// an SVG.
type Look struct{ Tokens, Icon []byte }

// Files are a page and its files, by name. The name of the page is "".
type Files struct {
	files map[string]file
	// policy is the content security policy. shared reports that pages of other origins may fetch
	// the files.
	policy string
	shared bool
}

// file is a file of a page. It is compressed when the first client asks for it in a coding: to compress
// all files would take most of the time of a start.
type file struct {
	contentType, etag string
	content           []byte
	gzipped, zstd     func() []byte
}

// Documents returns documents in YAML, by name.
func Documents(texts map[string]string) Files {
	f := Files{files: map[string]file{}}
	for name, text := range texts {
		f.add(name, contentTypeOf(name), []byte(text))
	}
	return f
}

// Reference returns the page of the OpenAPI document. It renders the page.
func Reference(document string, look Look) Files {
	f := Files{files: map[string]file{}, policy: referencePolicy}
	f.add("", contentTypeOf(".html"), renderReference(document))
	f.addLook(look)
	f.add("reference.js", contentTypeOf(".js"), read(own.ReadFile("pages/reference.js")))
	return f
}

// Link returns the page of the hub protocol. It renders the page.
func Link(look Look) Files {
	f := Files{files: map[string]file{}, policy: textPolicy, shared: true}
	f.add("", contentTypeOf(".html"), renderLink(protocol.Files()))
	f.addLook(look)
	err := fs.WalkDir(
		protocol.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(protocol.Files(), name)
			f.add(name, contentTypeOf(name), text)
			return err
		},
	)
	if err != nil {
		panic(fmt.Sprintf("docpages: the files in the binary cannot be read: %v", err))
	}
	return f
}

// addLook adds what every page loads.
func (f Files) addLook(look Look) {
	f.add("icon.svg", contentTypeOf(".svg"), look.Icon)
	style := append(bytes.Clone(look.Tokens), read(own.ReadFile("pages/docs.css"))...)
	f.add("docs.css", contentTypeOf(".css"), style)
	f.add("docs.js", contentTypeOf(".js"), read(own.ReadFile("pages/docs.js")))
}

func (f Files) add(name, contentType string, content []byte) {
	f.files[name] = file{
		contentType: contentType, etag: etagOf(content), content: content,
		gzipped: sync.OnceValue(func() []byte { return compress(content) }),
		zstd:    sync.OnceValue(func() []byte { return zstdEncoder.EncodeAll(content, nil) }),
	}
}

// zstdEncoder compresses files. It is safe for concurrent use.
var zstdEncoder = newZstdEncoder()

func newZstdEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprintf("docpages: zstd: %v", err)) // options that are constants
	}
	return e
}

func etagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// contentTypeOf returns the media type for the extension of a name: RFC 9512 for YAML, RFC 7763 for
// Markdown, and the one that JSON Schema registers. It does not depend on the machine's own table.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".yaml":
		return "application/yaml"
	case ".json":
		return "application/schema+json"
	default:
		return "text/markdown; charset=utf-8"
	}
}

// Serve answers with a file, or with 304 if the client has it. If there is none of that name, it
// returns false and writes nothing.
func (f Files) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	asset, ok := f.files[name]
	if !ok {
		return false
	}
	header := w.Header()
	header.Set("ETag", asset.etag)
	// Clients must revalidate, so that they see a new version at once.
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Vary", "Accept-Encoding")
	if f.policy != "" {
		header.Set("Content-Security-Policy", f.policy)
		header.Set("Referrer-Policy", "no-referrer")
	}
	if f.shared {
		header.Set("Access-Control-Allow-Origin", "*")
	}
	if matchesETag(r.Header.Values("If-None-Match"), asset.etag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	header.Set("Content-Type", asset.contentType)
	var content []byte
	switch coding := Coding(r.Header.Values("Accept-Encoding")); coding {
	case "zstd":
		header.Set("Content-Encoding", coding)
		content = asset.zstd()
	case "gzip":
		header.Set("Content-Encoding", coding)
		content = asset.gzipped()
	default:
		content = asset.content
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // fails only if the client has gone
	return true
}

// matchesETag reports whether If-None-Match has the tag (RFC 9110, section 13.1.2).
func matchesETag(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// Coding returns the content coding to use for a client with these values of Accept-Encoding: zstd or
// gzip, or "" for neither.
func Coding(values []string) string {
	for _, coding := range []string{"zstd", "gzip"} {
		if Accepts(values, coding) {
			return coding
		}
	}
	return ""
}

// Accepts reports whether a client with these values of Accept-Encoding (RFC 9110, section 12.5.3)
// accepts a content coding, with a weight above zero.
func Accepts(values []string, wanted string) bool {
	for _, value := range values {
		for coding := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			q, err := strconv.ParseFloat(strings.TrimPrefix(weight, "q="), 64)
			if strings.EqualFold(name, wanted) && (err != nil || q > 0) {
				return true
			}
		}
	}
	return false
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func decompress(gzipped []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		panic(fmt.Sprintf("docpages: a file in the binary is no gzip: %v", err))
	}
	return read(io.ReadAll(r))
}

// read returns embedded content. It panics on an error, which means that the binary is broken.
func read(content []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("docpages: the files in the binary cannot be read: %v", err))
	}
	return content
}
