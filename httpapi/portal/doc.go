// Package portal serves the pages for people, under /portal: signing in, the organizations of a
// person, and in each of them its dashboard, hubs, members, keys, sites and what happened. Routes
// gives them to the API's router, which has given a request an id, counted it on the client's
// address and writes its log line; what it refuses itself under /portal (no such path, another
// method, too many requests, a failure) WriteError answers. What pages about hubs show comes from
// the package live.
//
// # Signing in
//
// A person types an address and gets a mail with a link, which works once and for 15 minutes.
// Opening it shows whose it is and a button: what looks into mails on their way uses up nothing,
// and nobody is signed in by somebody else's link unawares. A link that no mail carries (`hubcloud
// dev` prints one) may sign in at once. Who asks for a link learns nothing about the address: the
// answer is the same, the same work is done for it, and whether the address may have a link (it is
// a member's, it has an account, or anybody may sign up) is looked up when the mail goes out, and
// again when the link is used. Asking is limited for each network and for each address, whoever has
// it, on each replica by itself. Whoever asks for another's links locks nobody out: they go to the
// one whose address it is, and each of them works.
//
// A session is a random token in a cookie, of which only the hash is kept, and lasts 30 days. Each
// sign-in makes a new one and ends the one that the browser had; signing out ends it on every
// replica at once, with the streams of its open pages. The cookie is HttpOnly and SameSite=Lax; it
// is Secure, with the prefix __Host-, but where --public-url is plain HTTP on the browser's own
// machine. After signing in the browser goes to the page that it wanted, if that is a page of the
// portal.
//
// # Who may do what
//
// What a person is in an organization is looked up at each request, in memory, so that a change of
// role and a removal hold at once; streams of a member who was removed end. An organization whose
// member one is not is answered like one that does not exist. Every member sees everything and
// operates devices, and may leave; owners and admins change what there is; what is about members
// the directory decides, by the member who acts: owners alone make and touch owners, and the last
// one stays.
//
// What changes something is a POST that comes from a page of ours (Sec-Fetch-Site, or Origin) and
// carries the session's form token. When it is done the browser is sent on (303), to a page that
// says what was done: one of a few fixed sentences, by a name in a cookie that lives for one page.
// What is refused is told on the page of the form, beside the field, with what was typed. A key
// that was made is shown on the answer itself, so that it is kept nowhere, not even until the next
// page. Forms that make something carry a mark: sent a second time, by a second click or by loading
// the answer again, they do nothing more; one that was refused or has failed may be sent again.
//
// Who asks as a script (Accept: application/json, or text/event-stream) is refused with {"message":
// …} in place of a page, and with 401 in place of the way to sign in.
//
// # The invitation's page
//
// GET /portal/invitations/{token} accepts the invitation: opening the link is what adds the person,
// as the contract has it. Opened again it says so and does nothing. It signs nobody in: whoever has
// the link has not shown to have the mailbox now. HEAD looks at nothing and accepts nothing, and
// neither does a browser that only fetches ahead. A link that came too late is 410, one that is
// none (any more) 404; both say what to do next.
//
// Whoever is signed in with another address than the one that has joined is told so, there and on
// the page of a link.
//
// # What pages hold to
//
// Lists have pages of 50, of which the address says after which item they go on; an item that has
// gone meanwhile leads to the first page. Members are found by address, hubs by name, id, serial
// and site; what was looked for is kept from page to page, and by what is done there.
//
// Pages are rendered on the server and work without a script, but for what is live. A content
// security contentSecurityPolicy allows files of our own and nothing else, no script or style that
// stands in a page; nobody may frame a page; no third party is asked for anything. A page is stored
// nowhere and tells no other site where the visitor came from; where its address holds a secret,
// not even ours, and that is in no log line either. What people called something is data wherever
// it stands. Files are named after their content and kept for good. Links between pages are
// relative, so that the service can stand behind a path of a proxy. Names stand in <bdi>, whichever
// way they are written, and addresses from left to right, so that none reads as another. Times are
// told as people do, in <time> with the exact one as title.
package portal
