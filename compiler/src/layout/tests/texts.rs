//! Text that is read is what was written; text that is wrong is told so.

use super::*;

#[test]
fn texts_stay_as_they_are() {
    for text in [
        "i = warp:4 · register:2 · lane:8",
        "i = warp:2 · register:4 · lane:4 · register:4, j = warp:4 · register:2 · lane:8 · register:4",
        "i = register:2@2 · lane:8, p = register:2@4 · lane:4 · register:2@1",
        "_ = lane:4@1, i = lane:8@4",
        "_ = cluster:2 · warp:2 · lane:32, i = 1",
        "i = lane:8@1^warp:8@1 · register:3, j = warp:8@1",
    ] {
        assert_eq!(value(text).to_string(), text);
    }
    for text in [
        "i = 64*1056, j = 32*32",
        "i = 8*1024^128, j = 64*16",
        "i = 8*3072^128, j = 192*16",
        "i = 128*16$0, j = 64*32",
        "b = 16*0, i = 1, j = 4*32, pad 32 after 1024",
        "i = 4*512^128^64, j = 16*32",
        "i = 7000*-32",
    ] {
        assert_eq!(memory(text).to_string(), text);
    }
    assert_eq!(value("i = register:2 · register:4").to_string(), "i = register:8");
    assert_eq!(value("i = lane:3@1 · lane:2@3"), value("i=lane:3@1\n·lane:2@3".replace('\n', "").as_str()));
}

#[test]
fn what_is_wrong_is_said() {
    let reason = |text: &str| text.parse::<ValueLayout>().unwrap_err().to_string();
    assert_eq!(
        reason("i = lane:8@1 · lane:8@4"),
        "axis i has a digit whose hardware digits make up others already"
    );
    assert_eq!(reason("i = lane:6@1, j = lane:4@4"), "lane is cut at 4 and at 6, which is no multiple of it");
    assert_eq!(reason("i = lane:3@1^warp:3@1"), "i xors a digit of size 3, which is no power of two");
    assert_eq!(reason("i = lane:0"), "lane has a digit of size 0");
    assert_eq!(reason("i = lane:2, i = warp:2"), "axis i is defined twice");
    assert_eq!(reason("i = thread:2"), "expected register, lane, warp or cluster, found 'thread'");
    assert_eq!(reason("lane:2"), "expected an axis: name = factors, found 'lane:2'");
    assert_eq!(reason("i = lane"), "expected a factor: dimension:size, found 'lane'");
    assert_eq!(reason("i = lane:x"), "expected a number, found 'x'");
    assert_eq!(reason("i = lane:1099511627776 · lane:2"), "lane is too large");
    assert_eq!(reason("i = lane:4@1^warp:2@1"), "warp:2@1 has 2 places, not 4");
    assert_eq!(
        reason("_ = lane:2@1, i = lane:4@1"),
        "axis i has a digit whose hardware digits make up others already"
    );
    let reason = |text: &str| text.parse::<MemoryLayout>().unwrap_err().to_string();
    assert_eq!(reason("i = 3*64^32"), "i xors a digit of size 3, which is no power of two");
    assert_eq!(
        reason("i = 8*1056^128, j = 32*32"),
        "axis i adds 1056 bits, no multiple of the 1024 bits that are xored"
    );
    assert_eq!(reason("i = 4*32$0, pad 32 after 64"), "a layout with dynamic strides cannot be padded");
    assert_eq!(reason("i = 4*32, pad 32 after 96"), "pad xors a digit of size 96, which is no power of two");
    assert_eq!(reason("i = 4"), "expected a digit: size*stride, found '4'");
    assert_eq!(reason("i = 2*9223372036854775807"), "i is too large");
}

proptest! {
    #[test]
    fn values_come_back_from_their_text(layout in layouts(12)) {
        let text = layout.to_string();
        prop_assert_eq!(&value(&text), &layout);
        prop_assert_eq!(value(&text).to_string(), text);
    }

    #[test]
    fn no_text_panics(text in "[ij_=lanewrp:@^·*$, 0-9pad\n]{0,40}") {
        let _ = text.parse::<ValueLayout>();
        let _ = text.parse::<MemoryLayout>();
    }
}
