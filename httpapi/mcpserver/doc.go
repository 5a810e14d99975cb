// Package mcpserver offers the API to language models as tools of the Model Context Protocol
// (https://modelcontextprotocol.io): sites, hubs, devices, last reported states, events, what needs
// attention, and, if the operator allows it, commands. It stands on the API's client, so a tool can
// do what its API key may do, within the same limits.
//
//   - Answers are bounded: a list has a limit, and what is left out comes with the cursor of the
//     answer. Answers have the fields of the API.
//   - Errors of the API are the result of a tool, with their type, so that a model can react to them.
//   - Without Config.Commands there is no tool that changes anything.
//   - Over HTTP (Handler), the process holds no key: each request must have the caller's own API key
//     as bearer token. So nobody, and no page in a browser, can use the key of somebody else. Requests
//     of pages of another origin are rejected, and on a loopback address requests with the name of
//     another host too, which DNS rebinding makes. There are no sessions.
//
// The package starts no goroutines of its own.
package mcpserver
