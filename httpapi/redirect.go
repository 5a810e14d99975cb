package httpapi

import (
	"net/http"
	"strings"

	"hubcloud/domain"
)

// Redirect returns the handler of a port without TLS beside an API that is served with TLS at
// publicURL, which has no slash at the end. It redirects browsers: GET and HEAD without an API key.
//
// Any other request is rejected with 400, also an enrolment of a hub (POST /link/v1/certificates):
// its key or secret has already crossed the network in clear text, and a client that follows a
// redirect would send it so each time without anyone noticing.
func (a API) Redirect(publicURL string) http.Handler {
	rt := a.api.bind(&route{
		method: methodAny, pattern: "(redirect)", access: forAddress,
		handle: func(req *request) error { return redirectToTLS(req, publicURL) },
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := a.api.begin(w, r)
		defer req.end()
		rt.ServeHTTP(req, r)
	})
}

func redirectToTLS(req *request, publicURL string) error {
	r := req.http
	if (r.Method != http.MethodGet && r.Method != http.MethodHead) ||
		r.Header.Get("Authorization") != "" || !strings.HasPrefix(r.URL.Path, "/") {
		return domain.Errorf(
			domain.CodeInvalidRequest,
			"request: must be sent to %s; a key or secret that was sent without TLS may have "+
				"been read by others: replace it", publicURL,
		)
	}
	req.w.Header().Set("Location", publicURL+r.URL.RequestURI())
	req.WriteHeader(http.StatusPermanentRedirect)
	return nil
}
