[(line_comment) (block_comment)] @comment.inclusive
