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

// authenticate verifies the request's API key and counts the request: on the key if it is valid,
// otherwise on the client's address, so that guessing keys soon gets 429 instead of 401.
func (a *api) authenticate(req *request) error {
	if len(req.http.Header["Authorization"]) > 0 {
		// Without news from the directory a key that this replica knows may have been revoked, and
		// one that it does not know may be valid.
		if err := a.confirm(req.ctx); err != nil {
			if limited := req.countForAddress(); limited != nil {
				return limited
			}
			return err
		}
	}
	key, err := a.verifyKey(req.http.Header)
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
	return req.checkAllowance(a.keys.Take(key.ID, req.start), a.metrics.limited.key)
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
	key, err := domain.ParseKey(token)
	if err != nil || key.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	access, found := a.Keys.Key(key.ID)
	if matches := key.Matches(access.SecretHash); !matches || !found ||
		access.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	return access, nil
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
