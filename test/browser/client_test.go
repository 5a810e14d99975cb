package browser

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

// clientPage is a page that uses the TypeScript client as it is built, without a bundler.
const clientPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Client</title><link rel="icon" href="data:,"></head>
<body>
<script type="module">
import { ApiError, Client, isGap } from "/client/index.js";

const client = new Client({ baseUrl: "/v1" });
window.client = client;
window.seen = [];
window.follow = async (hub, after) => {
	for await (const event of client.follow(hub, { after })) {
		if (isGap(event)) {
			throw new Error("events are missing");
		}
		seen.push(event.cursor);
	}
};
document.title = "Ready";
window.errorOf = (promise) => promise.then(
	() => "none", (error) => error instanceof ApiError ? error.type : String(error),
);
</script>
</body>
</html>`

// TestClient runs the TypeScript client in a page whose origin also serves the API, through a proxy
// that adds the key: lists, commands, errors, and following over a restart of the service.
func TestClient(t *testing.T) {
	t.Parallel()
	b, service, hub := openClientPage(t)
	b.expect(http.StatusNotFound)
	b.goTo("/")
	b.await("title", "Ready")
	page := fmt.Sprintf("(async () => { const hub = %q; ", hub)

	if got := eval[string](b, page+`
		const hubs = [];
		for await (const { id } of client.hubs()) hubs.push(id);
		window.begin = (await client.devices(hub)).cursor;
		follow(hub, begin);
		const color = { red: 1, green: 2, blue: 3 };
		const { outcome } = await client.sendAndWait(hub, 2, { key: "color", value: color });
		return [hubs.join(), outcome.status, outcome.value.green,
			await errorOf(client.hub("hub-none-0000-0001"))].join(" ");
	})()`); got != hub+" synchronized 2 not_found" {
		t.Errorf("calls in a page: got %q", got)
	}

	service.Kill()
	service.Begin()
	got := eval[string](b, page+`
		const { outcome } = await client.sendAndWait(hub, 1, { key: "lock", value: false });
		const wanted = [];
		for (let after = begin, more = true; more;) {
			const log = await client.events(hub, { after });
			wanted.push(...log.data.map((event) => event.cursor));
			[after, more] = [log.next_cursor, log.has_more];
		}
		for (let end = Date.now() + 60000; seen.length < wanted.length && Date.now() < end;)
			await new Promise((resolve) => setTimeout(resolve, 50));
		const same = wanted.every((cursor, i) => seen[i] === cursor);
		return [outcome.status, outcome.value, wanted.length > 4, same].join(" ");
	})()`)
	if want := "synchronized false true true"; got != want {
		t.Errorf("after a restart of the service: got %q, want %q", got, want)
	}
	b.clearConsole() // the browser reports the connections that the restart broke
}

// openClientPage returns a browser for the page, the service, which it may kill, and a hub's id.
func openClientPage(t *testing.T) (*tab, *harness.Service, string) {
	t.Helper()
	source, built := filepath.Join("..", "..", "httpapi", "client", "typescript"), t.TempDir()
	tools := nodejs.Install(t, source, "typescript")
	nodejs.Run(t, nodejs.Program(t, tools, source, "tsc", "-p", ".", "--outDir", built))
	target := harness.NewTarget(t)
	service := target.OwnService()
	tenant := target.Tenant("Pages")
	hub := target.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{
		{Kind: "lock", Name: "Front door"}, {Kind: "color_bulb", Name: "Lamp"},
	}})
	address, err := url.Parse(service.Public())
	harness.Must(t, err)
	routes := http.NewServeMux()
	routes.Handle("/v1/", &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // the restart breaks connections
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(address)
			r.Out.Header.Set("Authorization", "Bearer "+tenant.Key)
		},
	})
	routes.Handle("/client/", http.StripPrefix("/client/", http.FileServer(http.Dir(built))))
	routes.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, clientPage)
	})
	origin := httptest.NewServer(routes)
	t.Cleanup(func() {
		origin.CloseClientConnections()
		origin.Close()
	})
	return open(t, origin.URL), service, hub.ID()
}
