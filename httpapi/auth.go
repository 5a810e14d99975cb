package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"hubcloud/domain"
)

var (
	errNoKey = domain.Errorf(
		domain.CodeUnauthenticated,
		"Authorization: must be given once, in the form `Authorization: Bearer <API_KEY>`",
	)
	errBadKey = domain.Errorf(
		domain.CodeUnauthenticated, "Authorization: the API key is unknown or revoked",
	)
)

// authenticate sets the request's API key. It counts a request without a valid key on the client's
// address, so that guessing keys soon gets 429 instead of 401.
func (a *api) authenticate(req *request) error {
	key, err := a.findKey(req)
	if err != nil {
		if limited := req.countForAddress(); limited != nil {
			return limited
		}
		return err
	}
	req.key = key
	if a.KeyUse != nil {
		a.KeyUse.Used(key.ID, req.start)
	}
	return nil
}

// findKey returns the request's API key once this replica is known to be up to date.
func (a *api) findKey(req *request) (domain.KeyAccess, error) {
	if len(req.http.Header["Authorization"]) > 0 {
		// Without news from the directory a key that this replica knows may have been revoked, and
		// one that it does not know may be valid.
		if err := a.awaitFresh(req.ctx); err != nil {
			return domain.KeyAccess{}, err
		}
	}
	return a.verifyKey(req.http.Header)
}

// verifyKey returns the key of the Authorization header. An unknown key id takes the same time as a
// wrong secret and has the same error.
func (a *api) verifyKey(header http.Header) (domain.KeyAccess, error) {
	values := header["Authorization"]
	if len(values) != 1 {
		return domain.KeyAccess{}, errNoKey
	}
	token, ok := bearerToken(values[0])
	if !ok {
		return domain.KeyAccess{}, errNoKey
	}
	presented, err := domain.ParseKey(token)
	if err != nil || presented.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	key, found := a.Keys.Key(presented.ID)
	matches := presented.Matches(key.SecretHash) // for an unknown id too, which takes as long
	if !found || !matches || key.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	return key, nil
}

// bearerToken returns what follows the scheme Bearer, which may be in any case (RFC 9110, section
// 11.1; RFC 6750, section 2.1).
func bearerToken(value string) (string, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// requireScope returns insufficient_scope if the key does not have the scope. Every key has "".
func requireScope(key domain.KeyAccess, scope domain.Scope) error {
	if scope == "" || slices.Contains(key.Scopes, scope) {
		return nil
	}
	return domain.Errorf(
		domain.CodeInsufficientScope, "the API key does not have the scope %s", scope,
	)
}
