// Package portal serves the pages for people, under /portal: for now the page behind an invitation's link. It is a handler for the API's
// router, which has given the request an id, counted it on the client's address and writes its log line by then.
//
// # The invitation's page
//
// GET /portal/invitations/{token} accepts the invitation: opening the link is what adds the person, as the contract has it. Opened again it
// says so and does nothing. HEAD looks at nothing and accepts nothing, and neither does a browser that only fetches ahead. A link that came
// too late is 410, one that is none (any more) 404; both say what to do next.
//
// # What pages hold to
//
// Pages are rendered on the server and work without a script. A content security policy allows the page's own style sheet and icon and
// nothing else; nobody may frame a page; no third party is asked for anything. A page is stored nowhere and tells nobody where the visitor
// came from: its address holds a secret, which is in no log line either. What people called something is data wherever it stands. The style
// sheet and the icon are named after their content and kept for good. Links between pages are relative, so that the service can stand
// behind a path of a proxy.
package portal
