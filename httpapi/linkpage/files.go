package linkpage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"

	"hubcloud/hubbridge/protocol"
)

// Index is the name of the page. Its other files are below its address.
const Index = ""

// policy restricts the page to style sheets and images of its own origin.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Files holds the page and its files, by their path below /link/.
type Files map[string]file

type file struct {
	contentType, etag string
	content           []byte
}

// Load renders the page and returns all files.
func Load() Files {
	files := Files{}
	files.add(Index, "text/html; charset=utf-8", render(protocol.Files()))
	files.add("link.css", "text/css; charset=utf-8", read(own.ReadFile("files/link.css")))
	files.add("icon.svg", "image/svg+xml", read(own.ReadFile("files/icon.svg")))
	err := fs.WalkDir(
		protocol.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(protocol.Files(), name)
			files.add(name, contentTypeOf(name), text)
			return err
		},
	)
	if err != nil {
		panic(fmt.Sprintf("linkpage: the files in the binary cannot be read: %v", err))
	}
	return files
}

func (f Files) add(name, contentType string, content []byte) {
	sum := sha256.Sum256(content)
	f[name] = file{contentType, `"` + hex.EncodeToString(sum[:8]) + `"`, content}
}

// contentTypeOf returns the media type of a file of the protocol: RFC 9512 for YAML, RFC 7763 for
// Markdown, and the one that JSON Schema registers.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".yaml":
		return "application/yaml"
	case ".json":
		return "application/schema+json"
	default:
		return "text/markdown; charset=utf-8"
	}
}

// Serve answers with a file, or with 304 if the client has it. If there is none of that name, it
// returns false and writes nothing. matches reports whether the request's If-None-Match has a tag.
func (f Files) Serve(w http.ResponseWriter, name string, matches func(etag string) bool) bool {
	asset, ok := f[name]
	if !ok {
		return false
	}
	header := w.Header()
	header.Set("ETag", asset.etag)
	// Clients must revalidate, so that they see a new version at once.
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Access-Control-Allow-Origin", "*")
	if matches(asset.etag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	header.Set("Content-Type", asset.contentType)
	header.Set("Content-Length", strconv.Itoa(len(asset.content)))
	_, _ = w.Write(asset.content) // fails only if the client has gone
	return true
}
