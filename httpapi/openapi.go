package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"hubcloud/httpapi/reference"
)

//go:embed openapi.yaml
var openAPI string

// OpenAPI gives the document that describes everything this package answers to programs, in OpenAPI
// 3.1 and YAML. It is served at /v1/openapi.yaml.
func OpenAPI() string { return openAPI }

// documentRoutes are the document and the page to read it and to try calls. Both are for everyone.
func (a *api) documentRoutes() []*route {
	sum := sha256.Sum256([]byte(openAPI))
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	files := reference.Load()
	var routes []*route
	// the server leaves the body out of answers to HEAD
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		routes = append(
			routes,
			&route{
				method:  method,
				pattern: "/v1/openapi.yaml",
				access:  forAddress,
				handle: func(x *exchange) error {
					x.serveDocument(etag)
					return nil
				},
			},
			&route{
				method:  method,
				pattern: "/v1/reference",
				access:  forAddress,
				handle: func(x *exchange) error {
					return x.serveReference(files, reference.Index)
				},
			},
			&route{
				method:  method,
				pattern: "/v1/reference/{file}",
				access:  forAddress,
				handle: func(x *exchange) error {
					return x.serveReference(files, x.r.PathValue("file"))
				},
			},
		)
	}
	return routes
}

// serveDocument answers with the document, or with 304 to a client that has it. Its media type is
// that of RFC 9512.
func (x *exchange) serveDocument(etag string) {
	header := x.w.Header()
	header.Set("ETag", etag)
	// a new version is seen at once, an old one not sent again
	header.Set("Cache-Control", "no-cache")
	if matchesETag(x.r.Header.Values("If-None-Match"), etag) {
		x.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/yaml")
	header.Set("Content-Length", strconv.Itoa(len(openAPI)))
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write([]byte(openAPI)) // a client that does not take it is the client's affair
}

func (x *exchange) serveReference(files reference.Files, name string) error {
	if !files.Serve(x, x.r, name) {
		return noSuchPath(x)
	}
	return nil
}

// matchesETag says whether If-None-Match names the tag (RFC 9110, section 13.1.2).
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
