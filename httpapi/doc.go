// Package httpapi serves the contract over HTTP: sites, hubs, their devices, windows, commands and
// event logs, members and invitations under /v1, certificates for hubs under /link/v1, pages for
// people under /portal, and the state of the process at /healthz and /readyz. It is an adapter: who
// may do what, what there is, what happened and what a hub says come through the interfaces of
// ports.go, and nothing here knows where they have it from.
//
// # What every answer holds
//
// Each answer, refusals, unknown paths and faults included, carries X-Request-Id, a ULID that the
// error body repeats; all but /healthz and /readyz also RateLimit-Limit, RateLimit-Remaining,
// RateLimit-Reset (seconds until the allowance is whole) and RateLimit-Policy, as in drafts 03 to
// 07 of draft-ietf-httpapi-ratelimit-headers. A refusal has the contract's error body and one of
// the contract's types; what is no domain.Error becomes internal_error, and its text goes to the
// log alone. So it is too with what net/http refuses by itself, because it is no HTTP that it can
// read (see Listener): 400, 417, or 431, each with Connection: close; and with a connection for
// which there is no place.
//
// Each request that is over has one line in the log and one count, whatever became of it, and a
// span when there is a collector; all three name the route and never the path, which may hold a
// secret. What is asked of hubs meanwhile goes under the request's own id (telemetry.WithRequest).
//
// # The description
//
// openapi.yaml describes all that programs are answered, in OpenAPI 3.1. It is written by hand, and
// served at /v1/openapi.yaml with a page to read it and to try calls at /v1/reference. Tests hold
// it to the table of routes, the structures of answers and the domain's codes and scopes, in both
// directions, and bring about each answer that it describes; and every answer that a black-box test
// gets is held to it.
//
// # Order of refusals
//
// 401 unauthenticated, 429 rate_limited, 403 insufficient_scope, then 404, 405 or 400, and what a
// hub answers comes last: a hub is not asked what no hub would do. A request with a valid key
// counts on that key's bucket alone; one without, one that cannot be read, and every request for a
// certificate or a page, on the bucket of the client's address (an IPv6 client is its /64), so that
// guessing is refused with 429 after a burst. The routes of 404 and 405 ask what the others beside
// them ask: under /v1 nobody learns without a key what paths there are. 405 carries Allow and the
// type invalid_request. HEAD is answered for /healthz, /readyz and pages; the contract has none for
// the rest.
//
// Another organization's hub takes the same way through every route as one that does not exist: its
// owner is looked up in memory before anything else about the request is looked at.
//
// # What is taken
//
// Paths are taken as they stand: `//`, dot segments and a trailing slash are other paths, and there
// is nothing at them. A letter and its percent-encoding are the same, but an encoded slash
// separates nothing: no id has one. A body is one JSON object in UTF-8 with Content-Type
// application/json; names of fields are case-sensitive, and unknown ones, such as appear twice, and
// anything after the object are refused with a message that names them. A body where a route takes
// none is read and ignored. Unknown query parameters are ignored (clients add their own, such as
// cache busters); one of the contract's that is empty, repeated or out of bounds is refused, and so
// is an Idempotency-Key.
//
// # Limits
//
//	header with the path          32 KiB (net/http adds 4 KiB of its own)   431
//	time for the header           10 s, and for the first byte of it        400 or the connection's end
//	body                          64 KiB                                    400
//	objects in objects, arrays    16 deep                                   400
//	time for the body             10 s                                      400
//	idle connection               2 min                                     its end
//	an answer that is not read    10 s for each part of 64 KiB of a stream, page or large answer, 40 s for all else: the connection's end
//	a page that is read slowly    30 s, after which it ends early and says that there is more
//	answers that are not read     Config.AnswerBytesPerKey, Config.AnswerBytes       429, 503
//	connections of an address     Config.ConnectionsPerAddress   the end of the longest idle; if none is, 429
//	connections                   Config.Connections             the end of the longest idle; if none is, 503
//	requests                      Config.Rate and Config.Burst, of a key over all replicas that API.ShareLimits joins   429
//	streams and reads of events   Config.StreamsPerKey, and half of Config.Connections, on each replica   429
//	kernel's memory               twice 128 KiB a connection, twice 64 KiB a stream
//	commands and live calls under way, commands within an hour, what an organization creates: deploy/docs/limits.md   429
//	a request in all              30 s, and twice Config.HubTimeout more where a hub is asked   500
//
// # Live calls
//
// Nothing that a hub says is kept. A device's name and room are laid over what its hub says of it;
// they are read while the hub is asked. The list of devices carries Event-Cursor: a cursor of the
// hub's log from before the hub was asked, so that list and log together miss nothing. What became
// of a command whose caller has gone is for Commands to see to.
//
// # Streams
//
// One goroutine, the server's own, owns each response. A stream begins with its position, sends
// what it has in one write, and ends cleanly at the end of its lifetime, when its key is revoked,
// when the hub's log is begun anew, and when Config.Draining is closed. Each write has a deadline:
// a reader that stops reading is cut off after at most ten seconds, and holds up nobody. The
// position is told with each keepalive, and more often where Config.Retention is short, so that a
// client that has heard nothing can still go on.
//
// Streams are as the HTML standard's EventSource takes them: 200 and text/event-stream begin one,
// any other answer ends the client's tries (so 204 is never given), and retry is left to the
// client. EventSource cannot set Authorization; clients in browsers use fetch. There is no CORS: a
// key of an organization has no place in a page of somebody else's, so preflights get 401 like all
// that has no key, and no answer carries Access-Control-Allow-Origin.
package httpapi
