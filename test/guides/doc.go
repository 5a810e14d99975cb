// Package guides extracts the commands of the guides in httpapi/docs and runs them, page by page,
// against one service that is started as the first guide says.
//
// The blocks with the language sh of a page run in one shell, in order. A block of the language
// text after such a block holds lines that its output has, in this order, where … stands for any
// text. `sh needs=a,b` names programs: where one is missing, the block is skipped. `sh background`
// is the start of the service.
package guides
