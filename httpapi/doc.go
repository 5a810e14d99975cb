// Package httpapi serves the contract over HTTP: sites, hubs and their event logs under /v1, certificates for hubs under
// /link/v1, and the state of the process at /healthz and /readyz. It is an adapter: who may do what, what there is and what
// happened come through the interfaces of ports.go, and nothing here knows where they keep it.
//
// # What every answer holds
//
// Each answer, refusals, unknown paths and faults included, carries X-Request-Id, a ULID that the error body repeats; under /v1
// and /link also RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset (seconds until the allowance is whole) and
// RateLimit-Policy, as in drafts 03 to 07 of draft-ietf-httpapi-ratelimit-headers. A refusal has the contract's error body
// and one of the contract's types; what is no domain.Error becomes internal_error, and its text goes to the log alone.
//
// # Order of refusals
//
// 401 unauthenticated, 429 rate_limited, 403 insufficient_scope, then 404, 405 or 400. A request with a valid key counts on that key's
// bucket alone; one without, and every request for a certificate, on the bucket of the client's address (an IPv6 client is its
// /64), so that guessing is refused with 429 after a burst. The routes of 404 and 405 ask what the others beside them ask: under /v1
// nobody learns without a key what paths there are. 405 carries Allow and the type invalid_request. HEAD is answered for
// /healthz and /readyz; the contract has none for the rest.
//
// # What is taken
//
// Paths are taken as they stand: `//`, dot segments and a trailing slash are other paths, and there is nothing at them. A letter and
// its percent-encoding are the same, but an encoded slash separates nothing: no id has one. Field names are case-sensitive. A body is one JSON object in UTF-8 of at most 64 KiB with Content-Type application/json; unknown fields,
// fields that appear twice, and anything after the object are refused with a message that names them. A body where a route takes
// none is read and ignored up to the same size. Unknown query parameters are ignored (clients add their own, such as cache busters);
// one of the contract's that is empty, repeated or out of bounds is refused.
//
// # Streams
//
// One goroutine, the server's own, owns each response. A stream begins with its position, sends what it has in one write, and ends
// cleanly at the end of its lifetime, when its key is revoked, when the hub's log is begun anew, and when Config.Draining is closed.
// Each write has a deadline: a reader that stops reading is cut off after at most ten seconds, and holds up nobody.
package httpapi
