package httpapi

import (
	"embed"
	"io/fs"
	"net/http"

	"hubcloud/httpapi/docpages"
	"hubcloud/httpapi/portal"
)

// openAPI is the OpenAPI 3.1 document that describes the API. It is served at /v1/openapi.yaml.
//
//go:embed openapi.yaml
var openAPI string

// openAPIRoot is the OpenAPI 3.1 document of the routes outside /v1: the enrolment of hubs, and the
// state of the service. Most generators of clients ignore servers of single paths, so these routes
// have a document of their own. It is served at /v1/openapi-root.yaml.
//
//go:embed openapi-root.yaml
var openAPIRoot string

//go:embed docs/*.md
var guides embed.FS

// documentRoutes returns the routes of the OpenAPI documents, of the page that shows the first, and
// of the description of the hub protocol, and of the guides. They need no key.
func (a *api) documentRoutes() []*route {
	documents := docpages.Documents(map[string]string{
		"openapi.yaml": openAPI, "openapi-root.yaml": openAPIRoot,
		"openapi-3.2.yaml": docpages.OpenAPI32(openAPI),
	})
	folder, err := fs.Sub(guides, "docs")
	if err != nil {
		panic(err) // a name that is constant
	}
	look := docpages.Look{Tokens: portal.Asset("tokens.css"), Icon: portal.Asset("icon.svg")}
	texts := docpages.Guides(folder, look)
	reference, link := docpages.Reference(openAPI, look), docpages.Link(look)
	var routes []*route
	add := func(pattern string, handle func(*request) error) {
		// The server leaves out the body of answers to HEAD.
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			routes = append(
				routes, &route{method: method, pattern: pattern, access: forAddress, handle: handle},
			)
		}
	}
	serve := func(pattern string, files docpages.Files, name func(*request) string) {
		add(pattern, func(req *request) error {
			if !files.Serve(req, req.http, name(req)) {
				return rejectPath(req)
			}
			return nil
		})
	}
	named := func(name string) func(*request) string { return func(*request) string { return name } }
	file := func(req *request) string { return req.http.PathValue("file") }
	serve("/v1/openapi.yaml", documents, named("openapi.yaml"))
	serve("/v1/openapi-root.yaml", documents, named("openapi-root.yaml"))
	serve("/v1/openapi-3.2.yaml", documents, named("openapi-3.2.yaml"))
	serve("/llms.txt", texts, named("llms.txt"))
	add("/docs", redirectInto("docs/"))
	serve("/docs/", texts, named(""))
	serve("/docs/{file}", texts, file)
	serve("/v1/reference", reference, named(""))
	serve("/v1/reference/{file}", reference, file)
	add("/link", redirectInto("link/"))
	serve("/link/", link, named(""))
	serve("/link/{file}", link, file)
	serve("/link/schemas/{file}", link, func(req *request) string { return "schemas/" + file(req) })
	return routes
}

// redirectInto leads to the page of a folder, below which its relative links work.
func redirectInto(folder string) func(*request) error {
	return func(req *request) error {
		req.w.Header().Set("Location", folder)
		req.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
}
