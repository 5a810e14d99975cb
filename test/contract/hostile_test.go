package contract

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// hostile sends malformed requests to every endpoint. None is answered with 5xx, except where the
// hub fails, every error has the contract's body, and everything still works afterwards.
func hostile(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Hostile")
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}})

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	t.Run("requests", func(t *testing.T) {
		var sending sync.WaitGroup
		for worker := range uint64(4) {
			generator := &generator{rand.New(rand.NewPCG(seed, worker)), hub.ID()}
			client := tenant.For(t).Client
			if c.For(t).Owned() {
				// each key is limited to 50 requests a second
				_, key := c.For(t).OwnService().Key(tenant.Org)
				client = harness.NewClient(t, c.Base, key)
			}
			sending.Go(func() {
				for range 20 {
					for _, e := range endpoints {
						method, path, body, header := generator.malformed(e)
						answer, err := client.Try(method, path, body, header...)
						switch {
						case err != nil:
							// rejected by the HTTP client: nothing was sent
							if !strings.Contains(err.Error(), "invalid") {
								t.Errorf(
									"%s %s %.200s %q: got error %v, want an answer", method, path,
									body, header, err,
								)
							}
						case answer.Status >= 500 && !strings.HasPrefix(answer.ErrorType(), "hub_"):
							t.Errorf(
								"%s %s %.200s %q: %d %s", method, path, body, header, answer.Status,
								answer.Body,
							)
						case answer.Status >= 400:
							harness.CheckAPIError(t, answer)
						}
					}
				}
			})
		}
		sending.Wait()
	})

	t.Run("outside the API", func(t *testing.T) {
		// Other paths of the same address, without a key.
		public := harness.NewClient(t, c.Public, "")
		good := `{"serial":"HUB-ZZZZ-ZZZZ-ZZZZ","secret":"x","csr":"x"}`
		generator := &generator{rand.New(rand.NewPCG(seed, 100)), hub.ID()}
		for _, e := range []endpoint{
			{http.MethodPost, "/link/v1/certificates", "", good, false},
			{http.MethodGet, "/portal/invitations/{hub_id}", "", "", false},
			{http.MethodPost, "/portal/invitations/{hub_id}", "", good, false},
			{http.MethodPut, "/healthz", "", "", false},
			{http.MethodGet, "/readyz", "", "", false},
			{http.MethodDelete, "/v1/openapi.yaml", "", "", false},
			{http.MethodGet, "/{hub_id}", "", "", false},
		} {
			for range 10 {
				method, path, body, header := generator.malformed(e)
				answer, err := public.Try(method, path, body, header...)
				if err == nil && answer.Status >= 500 ||
					err != nil && !strings.Contains(err.Error(), "invalid") {
					t.Errorf(
						"%s %s %.200s %q: %d %s %v", method, path, body, header, answer.Status,
						answer.Body, err,
					)
				}
			}
		}
	})

	t.Run("on the wire", func(t *testing.T) {
		address := strings.TrimPrefix(strings.TrimPrefix(c.Public, "http://"), "https://")
		if !strings.HasPrefix(c.Public, "http://") {
			t.Skip("NOT TRIED: raw bytes over TLS")
		}
		auth := "Authorization: Bearer " + tenant.Key + "\r\n"
		for _, request := range []string{
			"GET /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth + auth + "\r\n",
			"GET /v1/sites HTTP/1.1\r\n" + auth + "\r\n",
			"GET /v1/sites HTTP/9.9\r\nHost: x\r\n" + auth + "\r\n",
			"GET /v1/%zz HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			"GET /v1/sites\r\n\r\n",
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
			"POST /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: -1\r\n\r\n",
			"POST /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth +
				"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
			"POST /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth +
				"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
			"POST /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth +
				"Content-Type: application/json\r\nContent-Length: 12\r\nExpect: nonsense\r\n\r\n" +
				"{\"name\":\"x\"}",
			"GET /v1/sites HTTP/1.1\r\nHost: x\r\n" + auth + "X-Long: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
			"GET /v1/" + strings.Repeat("x", 2<<20) + " HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			"GET * HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			"GET http://elsewhere.example/v1/sites HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		} {
			status, header, body := sendRaw(t, address, request)
			if status >= 500 {
				t.Errorf("%.100q: got %d %s, want less than 500", request, status, body)
			}
			if status >= 400 {
				harness.CheckBareError(t, status, header, body)
			}
		}
	})

	t.Run("afterwards", func(t *testing.T) {
		client := tenant.For(t)
		client.Get("/sites")
		client.Get(devicePath(hub.ID(), 1))
	})
}

// sendRaw sends bytes over a new connection and returns the answer. Status 0 means a closed
// connection.
func sendRaw(t *testing.T, address, request string) (status int, header http.Header, body []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	harness.Must(t, err)
	defer conn.Close()
	harness.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	// The server may answer and close before it has read the whole request.
	go func() { _, _ = io.WriteString(conn, request) }()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, nil
	}
	defer response.Body.Close()
	body, _ = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, response.Header, body
}

// generator generates malformed requests.
type generator struct {
	*rand.Rand
	hub string
}

// one returns one of the texts.
func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// malformed returns a request to an endpoint with one or more faults.
func (g *generator) malformed(e endpoint) (method, path string, body any, header []string) {
	hub := g.one(
		g.hub, g.hub, g.hub, noHub, "x", "%00", "%ff%fe", strings.Repeat("x", 3000), "..%2f", "😀",
	)
	if strings.HasSuffix(e.path, "/reset-link") && hub == g.hub {
		hub = noHub // the request has no parameters, and the hub must stay connected
	}
	method, path, body = e.method, e.at(hub), e.sent()
	if strings.HasSuffix(path, "/stream") {
		// never a valid id: a stream would not end
		header = append(
			header, "Last-Event-ID",
			g.one("garbage", strings.Repeat("x", 3000), "AAAA", "\x01", "é"),
		)
	}
	for range 1 + g.IntN(2) {
		switch g.IntN(6) {
		case 0, 1, 2:
			if e.body != "" {
				body = g.body(e.body)
			} else {
				body = g.one("{", "[]", `{"x":1}`, "\x00", strings.Repeat("x", 70<<10))
			}
		case 3:
			if !strings.HasSuffix(path, "/stream") {
				path += "?" + g.query()
			}
		case 4:
			header = append(
				header,
				g.one(
					"Content-Type", "Idempotency-Key", "Accept", "Content-Encoding",
					"If-None-Match", "Range", "X-Forwarded-For", "Accept-Encoding",
				),
				g.one(
					"garbage", "application/xml", strings.Repeat("k", 5000), "\xff\xfe", "*/*;q=x",
					"bytes=0-", "1.2.3.4, x", "gzip", ";;;",
				),
			)
		case 5:
			path = strings.Replace(
				path, "/1",
				"/"+g.one("0", "-1", "x", "9999999999999999999999", "1.5", "%31", "1%00", "true"),
				1,
			)
		}
	}
	return method, path, body, header
}

// query returns a nearly valid query.
func (g *generator) query() string {
	value := g.one(
		"", "0", "-1", "x", "1e9", "99999999999999999999", "null", "true",
		strings.Repeat("9", 2000), "\x00", "é", "' OR 1=1 --", "%", "a&b=c;d",
	)
	return g.one(
		"limit", "after", "wait", "starting_after", "site_id", "x", "limit[]", "LIMIT",
	) + "=" + g.one(url.QueryEscape(value), "%zz", "%", "%00")
}

// body returns a nearly valid body.
func (g *generator) body(good string) any {
	var object map[string]any
	if json.Unmarshal([]byte(good), &object) != nil {
		return good
	}
	values := []any{
		nil, true, 0, -1, 1.5, 1e300, "", " ", "x", "\x00", "\u202e", strings.Repeat("x", 5000),
		[]any{}, map[string]any{}, []any{1, "x", nil}, map[string]any{"x": map[string]any{"y": 1}},
		"' OR 1=1 --", "<script>", "../../x", json.Number("99999999999999999999999999"),
		"hub-0000-0000-0000", "a@b", "null",
	}
	for name := range object {
		if g.IntN(2) == 0 {
			object[name] = values[g.IntN(len(values))]
		}
		if g.IntN(8) == 0 {
			delete(object, name)
		}
	}
	if g.IntN(4) == 0 {
		name := g.one("", "x", "__proto__", "Name", "id", strings.Repeat("n", 2000), "é\x00")
		object[name] = values[g.IntN(len(values))]
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return good
	}
	switch text := string(encoded); g.IntN(8) {
	case 0:
		return text[:g.IntN(len(text))]
	case 1:
		return text + g.one("x", "{}", "\x00", ",")
	case 2:
		return "[" + text + "]"
	case 3:
		return strings.Repeat("[", 1+g.IntN(20000))
	case 4:
		return fmt.Sprintf(
			`{"name":%s1%s}`, strings.Repeat(`{"a":`, 5000), strings.Repeat("}", 5000),
		)
	default:
		return text
	}
}
