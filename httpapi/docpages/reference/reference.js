"use strict";

// How much of an event stream is shown: a call has to end to have an answer, and a stream stays open for a quarter of an hour.
const streamShown = 10_000; // ms

// fetchShown is fetch, but for event streams: their answer is what comes in the first ten seconds.
async function fetchShown(url, options) {
  const response = await fetch(url, options);
  if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    return response;
  }
  const reader = response.body.getReader();
  const timer = setTimeout(() => reader.cancel(), streamShown);
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    text += decoder.decode(value, { stream: true });
  }
  clearTimeout(timer);
  text += `: this page shows the first ${streamShown / 1000} s of a stream\n`;
  return new Response(text, { status: response.status, statusText: response.statusText, headers: response.headers });
}

window.reference = SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null, // asks no other host
  requestInterceptor: (request) => {
    request.userFetch = fetchShown;
    return request;
  },
});
