// Package codestatus says how HTTP tells a refusal: the one table of codes and statuses, for the
// API and for the portal's pages alike.
package codestatus

import (
	"maps"
	"net/http"

	"hubcloud/domain"
)

// statuses gives the HTTP status of each code of the contract.
var statuses = map[domain.Code]int{
	domain.CodeInvalidRequest:      http.StatusBadRequest,
	domain.CodeUnauthenticated:     http.StatusUnauthorized,
	domain.CodeInsufficientScope:   http.StatusForbidden,
	domain.CodeForbidden:           http.StatusForbidden,
	domain.CodeNotFound:            http.StatusNotFound,
	domain.CodeIdempotencyConflict: http.StatusConflict,
	domain.CodeCursorExpired:       http.StatusGone,
	domain.CodeCommandRefused:      http.StatusUnprocessableEntity,
	domain.CodeHubNotAddable:       http.StatusUnprocessableEntity,
	domain.CodeRateLimited:         http.StatusTooManyRequests,
	domain.CodeInternal:            http.StatusInternalServerError,
	domain.CodeHubError:            http.StatusBadGateway,
	domain.CodeHubOffline:          http.StatusServiceUnavailable,
	domain.CodeHubUnavailable:      http.StatusServiceUnavailable,
	domain.CodeHubTimeout:          http.StatusGatewayTimeout,
	domain.CodeServiceUnavailable:  http.StatusServiceUnavailable,
}

// Of gives the HTTP status of a code of the contract, and false for what is none.
func Of(code domain.Code) (status int, ok bool) {
	status, ok = statuses[code]
	return status, ok
}

// All gives the table.
func All() map[domain.Code]int { return maps.Clone(statuses) }
