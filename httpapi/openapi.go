package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"hubcloud/httpapi/linkpage"
	"hubcloud/httpapi/reference"
)

//go:embed openapi.yaml
var openAPI string

//go:embed openapi-root.yaml
var openAPIRoot string

// OpenAPI returns the OpenAPI 3.1 document, in YAML, that describes the API. It is served at
// /v1/openapi.yaml.
func OpenAPI() string { return openAPI }

// OpenAPIRoot returns the OpenAPI 3.1 document, in YAML, of the routes outside /v1: the enrolment
// of hubs, and the state of the service. Most generators of clients ignore servers of single paths,
// so these routes have a document of their own. It is served at /v1/openapi-root.yaml.
func OpenAPIRoot() string { return openAPIRoot }

// document is an OpenAPI document as it is served.
type document struct{ text, etag string }

func newDocument(text string) document {
	sum := sha256.Sum256([]byte(text))
	return document{text, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// documentRoutes returns the routes of the OpenAPI documents, of the page that shows the first, and
// of the description of the hub protocol. They need no key.
func (a *api) documentRoutes() []*route {
	versioned, root := newDocument(openAPI), newDocument(openAPIRoot)
	files, link := reference.Load(), linkpage.Load()
	var routes []*route
	// The server leaves out the body of answers to HEAD.
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		routes = append(
			routes,
			&route{
				method:  method,
				pattern: "/v1/openapi.yaml",
				access:  forAddress,
				handle: func(req *request) error {
					req.serveDocument(versioned)
					return nil
				},
			},
			&route{
				method:  method,
				pattern: "/v1/openapi-root.yaml",
				access:  forAddress,
				handle: func(req *request) error {
					req.serveDocument(root)
					return nil
				},
			},
			&route{
				method:  method,
				pattern: "/v1/reference",
				access:  forAddress,
				handle: func(req *request) error {
					return req.serveReference(files, reference.Index)
				},
			},
			&route{
				method:  method,
				pattern: "/v1/reference/{file}",
				access:  forAddress,
				handle: func(req *request) error {
					return req.serveReference(files, req.http.PathValue("file"))
				},
			},
			linkRoute(method, "/link", redirectToLink),
			linkRoute(method, "/link/", func(req *request) error {
				return req.serveLink(link, linkpage.Index)
			}),
			linkRoute(method, "/link/{file}", func(req *request) error {
				return req.serveLink(link, req.http.PathValue("file"))
			}),
			linkRoute(method, "/link/schemas/{file}", func(req *request) error {
				return req.serveLink(link, "schemas/"+req.http.PathValue("file"))
			}),
		)
	}
	return routes
}

// serveDocument answers with a document, or with 304 if the client has it. The media type is from
// RFC 9512.
func (req *request) serveDocument(d document) {
	header := req.w.Header()
	header.Set("ETag", d.etag)
	// Clients must revalidate, so that they see a new version at once.
	header.Set("Cache-Control", "no-cache")
	if matchesETag(req.http.Header.Values("If-None-Match"), d.etag) {
		req.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/yaml")
	header.Set("Content-Length", strconv.Itoa(len(d.text)))
	req.WriteHeader(http.StatusOK)
	_, _ = req.Write([]byte(d.text)) // fails only if the client has gone
}

// linkRoute returns a route of the description of the hub protocol.
func linkRoute(method, pattern string, handle func(*request) error) *route {
	return &route{method: method, pattern: pattern, access: forAddress, handle: handle}
}

// redirectToLink leads to the page, below which its relative links work.
func redirectToLink(req *request) error {
	req.w.Header().Set("Location", "link/")
	req.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

func (req *request) serveLink(files linkpage.Files, name string) error {
	if !files.Serve(req, name, func(etag string) bool {
		return matchesETag(req.http.Header.Values("If-None-Match"), etag)
	}) {
		return rejectPath(req)
	}
	return nil
}

func (req *request) serveReference(files reference.Files, name string) error {
	if !files.Serve(req, req.http, name) {
		return rejectPath(req)
	}
	return nil
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
